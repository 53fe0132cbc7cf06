"""Text to ids and back."""

import json
import pickle
import random
import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.text.normalization import normalize
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK
from dragoman.text.tokenizer import Tokenizer, VocabularyTooLargeError, _sample

KINDS = ("bpe", "unigram")
LOOKS_SPECIAL = "<s> </s> <pad> <unk> <0x41> ▁ ▅ ⁇ \ufffd <0x41"


def sentences(count=400, seed=0):
    """Made-up words whose parts recur, so that there is something to learn."""
    draw = random.Random(seed)
    stems = ["lern", "geh", "häus", "walk", "talk", "über", "kinder", "happi", "schön"]
    ends = ["en", "er", "ing", "ness", "lich", "te", "s", ""]
    return [
        " ".join(draw.choice(stems) + draw.choice(ends) for _ in range(draw.randint(2, 9))) + "."
        for _ in range(count)
    ]


def trained(kind, **changes):
    corpus = [*sentences(), LOOKS_SPECIAL, *["<s>bold</s> <0x41>"] * 50]
    return Tokenizer.train(corpus, TokenizerConfig(kind=kind, vocabulary=340, **changes))


TOKENIZERS = {kind: trained(kind, symbols=("<de>", "⟨1⟩")) for kind in KINDS}


@pytest.fixture(params=KINDS)
def tokenizer(request):
    return TOKENIZERS[request.param]


any_text = st.text(alphabet=st.characters(), max_size=40) | st.lists(
    st.sampled_from(["<s>", "</s>", "<0x41>", "<pad>", "▁", "▅", "<de>", "⟨1⟩", "lern", " ", "é"])
).map("".join)
any_kind = st.sampled_from(KINDS)


@given(any_text, any_kind)
def test_decoding_gives_back_any_text_normalised(text, kind):
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == normalize(text, "nfc")
    assert not {PAD, BOS, EOS, UNK} & set(ids)


@given(st.lists(any_text, max_size=5), any_kind)
def test_a_batch_equals_its_texts_one_by_one(texts, kind):
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


@given(st.lists(st.integers(-5, 400), max_size=30), any_kind)
def test_any_ids_decode_to_one_line_and_every_piece_has_its_word(ids, kind):
    tokenizer = TOKENIZERS[kind]
    text = tokenizer.decode(ids)
    assert text == " ".join(text.split())
    words = tokenizer.word_indices(ids)
    assert len(words) == len(ids)
    assert words == sorted(words) or -1 in words
    assert {word for word in words if word >= 0} == set(range(len(text.split())))


@given(any_text, any_kind)
def test_the_pieces_of_a_word_decode_to_that_word(text, kind):
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(text)
    for number, word in enumerate(tokenizer.decode(ids).split()):
        own = [
            i
            for i, belongs in zip(ids, tokenizer.word_indices(ids), strict=True)
            if belongs == number
        ]
        assert tokenizer.decode(own) == word


def test_marks_belong_to_no_word_and_are_not_decoded(tokenizer):
    ids = [BOS, *tokenizer.encode("walking 한국"), EOS, PAD]
    words = tokenizer.word_indices(ids)
    assert words[0] == words[-1] == words[-2] == -1
    assert tokenizer.decode(ids) == "walking 한국"


def test_a_byte_of_a_broken_character_does_not_take_the_next_word_along(tokenizer):
    first_byte = tokenizer.encode("한")[-3]
    ids = [*tokenizer.encode("lern"), first_byte, *tokenizer.encode("talk")]
    assert tokenizer.decode(ids) == "lern\ufffd talk"
    assert tokenizer.word_indices(ids)[-1] == 1
    assert tokenizer.word_indices(ids)[len(tokenizer.encode("lern"))] == 0


def test_what_looks_like_a_mark_is_text(tokenizer):
    for text in LOOKS_SPECIAL.split():
        assert tokenizer.decode(tokenizer.encode(text)) == normalize(text, "nfc")


def test_symbols_are_one_piece_wherever_they_stand(tokenizer):
    assert tokenizer.pieces(tokenizer.encode("lern⟨1⟩en")).count("⟨1⟩") == 1
    assert "<de>" in tokenizer.pieces(tokenizer.encode("<de> lernen"))


@pytest.mark.parametrize("kind", KINDS)
def test_training_twice_gives_the_same_tokeniser(kind):
    # Fewer than there are: the sample is drawn, and must be drawn alike.
    config = TokenizerConfig(kind=kind, vocabulary=330, sample_sentences=200)
    corpus = sentences()
    one, two = Tokenizer.train(iter(corpus), config), Tokenizer.train(corpus, config)
    assert one.fingerprint == two.fingerprint
    assert Tokenizer.train(corpus[1:], config).fingerprint != one.fingerprint


IN_ANOTHER_PROCESS = """
import random
from dragoman.config import TokenizerConfig
from dragoman.text.tokenizer import Tokenizer
draw = random.Random(0)
lines = [" ".join("".join(draw.choices("abcdefgh", k=4)) for _ in range(6)) for _ in range(900)]
for kind in ("bpe", "unigram"):
    for size in (200, 5000):
        config = TokenizerConfig(kind=kind, vocabulary=400, sample_sentences=size)
        print(kind, size, Tokenizer.train(lines, config).fingerprint)
"""


@pytest.mark.slow
def test_training_in_two_processes_gives_the_same_tokeniser():
    found = [
        subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert len(set(found[0].split()[2::3])) == 4, "a sample is not the whole"


def test_a_sample_gives_every_sentence_the_same_chance():
    # 200 sentences of each of 10 kinds; 500 are drawn, about 50 of each.
    drawn = Counter(text[0] for text in _sample((f"{n % 10} {n}" for n in range(2000)), 500))
    assert sum(drawn.values()) == 500
    assert all(30 <= count <= 70 for count in drawn.values()), drawn
    places = sorted(int(text.split()[1]) for text in _sample((f"- {n}" for n in range(2000)), 500))
    assert len(set(places)) == 500
    assert 850 <= sum(places) / 500 <= 1150, "neither the first nor the last are preferred"


def test_a_sample_of_all_is_all_in_order():
    assert list(_sample(["b", "a", "c"], 3)) == ["b", "a", "c"]


def test_saving_and_loading_keeps_everything(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "model")
    loaded = Tokenizer.load(tmp_path / "model")
    assert loaded == tokenizer
    assert (loaded.kind, loaded.normalization, len(loaded)) == (tokenizer.kind, "nfc", 340)
    text = "lernen ⟨1⟩ 한국"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "tokenizer.json",
        "tokenizer.model",
    ]


def test_a_tokeniser_travels_to_another_process(tokenizer):
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode(LOOKS_SPECIAL) == tokenizer.encode(LOOKS_SPECIAL)
    assert copy.fingerprint == tokenizer.fingerprint


def test_normalisation_is_part_of_the_fingerprint_and_of_encoding():
    config = TokenizerConfig(vocabulary=320, normalization="nfkc")
    compatible = Tokenizer.train(sentences(), config)
    assert compatible.decode(compatible.encode("ﬁne")) == "fine"
    plain = Tokenizer(compatible.model, kind="bpe", normalization="none")
    assert plain.decode(plain.encode("ﬁne")) == "ﬁne"
    assert plain.fingerprint != compatible.fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_named_as_the_largest_is_possible(kind):
    corpus = sentences(60)
    with pytest.raises(ConfigError, match="too large for 60 lines of text") as caught:
        Tokenizer.train(corpus, TokenizerConfig(kind=kind, vocabulary=9000))
    assert isinstance(caught.value, VocabularyTooLargeError)
    largest = caught.value.largest
    assert f"set tokenizer.vocabulary={largest} or less" in str(caught.value)
    assert len(Tokenizer.train(corpus, TokenizerConfig(kind=kind, vocabulary=largest))) == largest
    with pytest.raises(ConfigError):
        Tokenizer.train(corpus, TokenizerConfig(kind=kind, vocabulary=largest + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_named_as_the_least_is_possible(kind):
    corpus = [chr(0x4E00 + number) * 2 for number in range(500)]
    with pytest.raises(ConfigError, match="too small for the characters") as caught:
        Tokenizer.train(corpus, TokenizerConfig(kind=kind, vocabulary=400))
    least = int(re.search(r"set tokenizer\.vocabulary=(\d+)", str(caught.value))[1])
    assert len(Tokenizer.train(corpus, TokenizerConfig(kind=kind, vocabulary=least))) == least


@pytest.mark.parametrize("corpus", [[], ["", " \t", "\x00"]])
def test_a_corpus_without_text_is_refused(corpus):
    with pytest.raises(DataError, match="no text"):
        Tokenizer.train(corpus, TokenizerConfig())


def test_too_little_text_for_any_vocabulary_is_refused():
    with pytest.raises(DataError, match="2 lines of text: too little"):
        Tokenizer.train(["a b", "c"], TokenizerConfig())


def test_one_very_long_line_is_learned_from():
    line = " ".join(sentences(3000))
    tokenizer = Tokenizer.train([line], TokenizerConfig(vocabulary=340))
    assert "kinder" in "".join(tokenizer.pieces(range(260, 340)))
    unspaced = "".join(chr(0x4E00 + n * n % 17) for n in range(10**6))
    assert len(Tokenizer.train([unspaced], TokenizerConfig(vocabulary=300))) == 300


def test_an_error_while_reading_is_raised_as_it_was():
    def broken():
        yield "some text"
        raise DataError("corpus.en, line 2: bad")

    with pytest.raises(DataError, match=r"corpus\.en, line 2: bad"):
        Tokenizer.train(broken(), TokenizerConfig())


@pytest.mark.parametrize("symbols", [("a b",), ("",), ("<s>",), ("<0x41>",), ("x", "x"), ("▁",)])
def test_symbols_that_cannot_be_are_refused(symbols):
    with pytest.raises(ConfigError, match=r"tokenizer\.symbols"):
        Tokenizer.train(sentences(), TokenizerConfig(vocabulary=320, symbols=symbols))


def test_training_prints_nothing(capfd):
    Tokenizer.train(sentences(), TokenizerConfig(vocabulary=320))
    assert capfd.readouterr() == ("", "")


def corrupt(name, content):
    def damage(directory):
        (directory / name).write_bytes(content((directory / name).read_bytes()))

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda directory: (directory / "tokenizer.model").unlink(), "no such file"),
        (lambda directory: (directory / "tokenizer.json").unlink(), "no such file"),
        (corrupt("tokenizer.model", lambda data: data[:-1000]), "truncated"),
        (corrupt("tokenizer.model", lambda data: b""), "truncated"),
        (corrupt("tokenizer.json", lambda data: b"{"), "not a tokeniser"),
        (corrupt("tokenizer.json", lambda data: b"\xff"), "not a tokeniser"),
        (corrupt("tokenizer.json", lambda data: b"[1]"), "not a tokeniser"),
        (corrupt("tokenizer.json", lambda data: data.replace(b'mat": 1', b'mat": 2')), "newer"),
        (corrupt("tokenizer.json", lambda data: data.replace(b"nfc", b"nfx")), "unknown"),
    ],
)
def test_a_damaged_tokeniser_is_refused_with_its_file(damage, message, tmp_path):
    TOKENIZERS["bpe"].save(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelError, match=message) as caught:
        Tokenizer.load(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_foreign_sentencepiece_model_is_refused(tmp_path):
    import io

    import sentencepiece

    foreign = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(sentences()), model_writer=foreign, vocab_size=60, minloglevel=3
    )
    with pytest.raises(ModelError, match="not made by Dragoman"):
        Tokenizer(foreign.getvalue(), kind="unigram", normalization="nfc")
    with pytest.raises(ModelError, match="not a SentencePiece model"):
        Tokenizer(b"nonsense", kind="unigram", normalization="nfc")


def test_the_settings_file_says_what_the_tokeniser_is(tmp_path):
    TOKENIZERS["unigram"].save(tmp_path)
    assert json.loads((tmp_path / "tokenizer.json").read_text()) == {
        "format": 1,
        "kind": "unigram",
        "normalization": "nfc",
        "fingerprint": TOKENIZERS["unigram"].fingerprint,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_tag_is_a_piece_that_no_text_has_and_that_says_nothing(kind, tmp_path):
    config = TokenizerConfig(kind=kind, vocabulary=330, symbols=("<de>",))
    made = Tokenizer.train(sentences(), config, tags=("<formal>", "<informal>"))
    made.save(tmp_path)
    tokenizer = Tokenizer.load(tmp_path)
    assert list(tokenizer.tags) == ["<formal>", "<informal>"]
    assert tokenizer.symbols == ["<de>"]
    plain = tokenizer.encode("so <formal> it is")
    assert not set(plain) & set(tokenizer.tags.values())
    tagged = [tokenizer.tags["<formal>"], *plain]
    assert tokenizer.decode(tagged) == tokenizer.decode(plain) == "so <formal> it is"
    assert tokenizer.word_indices(tagged) == [-1, *tokenizer.word_indices(plain)]
    with pytest.raises(ConfigError, match="'<de>' is taken by a tag; leave it out"):
        Tokenizer.train(sentences(), config, tags=("<de>",))


def test_a_tokenizer_learned_without_tags_has_none():
    assert TOKENIZERS["bpe"].tags == {}
