// The texts of the page, in English and Korean.

export const LANGUAGES = [["en", "EN"], ["ko", "한국어"]];
export const THEMES = ["light", "auto", "dark"];

const TEXTS = {
  en: {
    "views": "Views", "tab.translate": "Translate", "tab.attention": "Attention", "tab.how": "How it works", "tab.parse": "Parse",
    "language": "Language", "theme": "Colours", "theme.light": "Light", "theme.auto": "Auto", "theme.dark": "Dark",
    "unreachable": "The service does not answer.", "key": "API key", "use": "Use it", "model": "Model",
    "type": "Type a sentence", "source": "Text to translate", "target": "Translation", "target.hint": "The translation appears here as you type.", "example": "Try an example",
    "confidence": "right with a probability of {share}", "issue.language": "This seems to be {language}, but the model translates from {source}.", "issue.item": "“{item}” may not have come through.", "issue.doubtful": "A part of this could not be translated well.",
    "alternatives": "Other translations", "score": "log-probability / length penalty", "end": "(end)",
    "correct": "Correct this translation", "correct.keep": "Keep my correction", "correct.cancel": "Cancel", "correct.consent": "What you change is kept on this server in {file}, and is used for later translations and for training.", "correct.kept": "Your correction is kept, and used from now on.", "correct.same": "Nothing was changed, so nothing is kept.",
    "glossary": "Glossary", "glossary.hint": "house = Gebäude", "glossary.how": "One term per line: the term, =, its translation.",
    "sentence": "Sentence", "sentence.none": "Type a sentence to look at.", "look": "Look",
    "part": "Attention of", "part.encoder": "Encoder", "part.decoder": "Decoder", "part.cross": "Cross", "layer": "Layer", "head": "Head",
    "look.encoder": "Where each source word looks in the source.", "look.decoder": "Where the decoder looks in what it has said, to say each word.", "look.cross": "Where the decoder looks in the source, to say each word.",
    "several": "Several heads", "heads": "All heads", "heads.axis": "Layers from top to bottom, heads from left to right",
    "layer.all": "All heads of layer {layer}", "head.of": "layer {layer}, head {head}",
    "matrix": "Matrix", "matrix.mean": "Matrix, the mean of these heads", "matrix.of": "Attention weights of {heads}", "looks": "“{text}” looks at {best}.",
    "switch.off": "Switch off", "switch.on": "Switch on", "switch.on.one": "Switch on {head}", "switch.all": "Switch all on", "off": "Switched off",
    "again": "Translate again without them", "before": "With all heads", "after": "Without", "unchanged": "The translation is the same.",
    "beam": "Beam search", "beam.how": "Each step makes every hypothesis one piece longer and keeps the best. The number is the sum of log-probabilities; at an end, that sum divided by the length penalty.",
    "beam.size": "Beam", "beam.step": "Step", "beam.at": "Step {step} of {last}", "beam.hypothesis": "Hypothesis", "beam.piece": "log P of the piece", "beam.total": "sum", "beam.fate": "",
    "fate.kept": "goes on", "fate.ended": "ends", "fate.dropped": "dropped", "previous": "Previous", "next": "Next",
    "parse.type": "Type a sentence to parse", "parse.sentence": "Sentence to parse", "parse.hint": "The tree appears here as you type.", "parse.confidence": "confidence {share} %", "parse.confidence.what": "the probability of an action of the parser, geometric mean", "loading": "Reading the model …", "parse.brackets": "Brackets",
    "how.steps": "Steps", "how.map": "{name} in colours", "how.all": "first numbers; colours of all {columns}", "how.first": "first numbers; colours of {shown} of {columns}",
    "how.word": "Row of", "how.key": "looks at", "how.bos": "<BOS>", "how.after": "After", "how.logit": "logit {logit}",
    "how.pieces": "The sentence as pieces", "how.pieces.why": "The model reads pieces, not words: the tokeniser knows {vocabulary} of them and gives each its number. A dot marks a piece that continues a word.",
    "how.pieces.decoder": "The decoder reads <BOS> and what it has said so far, as pieces with numbers of their own. A row of what follows is named for the piece read last; from it the next one is predicted.",
    "how.embedding": "Embedding", "how.embedding.why": "Every number stands for a learned vector of d_{model} = {d_model} values, multiplied by √d_{model} so that the positions added next do not drown it.",
    "how.positions": "Positional encoding", "how.positions.why": "Attention by itself does not know the order. So each position has a pattern of sines and cosines: fast waves in the first dimensions, slow ones in the last.",
    "how.positions.learned": "Attention by itself does not know the order. This model has learned a vector for each position.", "how.positions.inside": "This model adds nothing here: its positions act inside attention.",
    "how.sum": "Embedding plus position", "how.sum.why": "The sum goes into the first layer. What the chosen layer reads has passed through the layers below it.", "how.sum.layer": "x that layer {layer} reads",
    "how.qkv": "Queries, keys and values", "how.qkv.why": "Three learned matrices make three vectors of every piece, for head {head} of d_{k} = {d_k} values: a query asks, a key answers to it, a value is what is handed on.",
    "how.qkv.cross": "The queries come from the decoder, the keys and values from m, the encoder's output: every target piece asks the whole source.",
    "how.scores": "Scores", "how.scores.why": "How well does a query fit a key? Their dot product says so: one number for every pair of pieces.",
    "how.scaled": "Scaling", "how.scaled.why": "Divided by √d_{k} = {root}. Products of long vectors grow, and softmax would have almost no gradient where they are large.", "how.scaled.bias": "Divided by √d_{k} = {root}; then b, what this head has learned for each distance, is added.",
    "how.mask": "Mask", "how.mask.why": "The decoder may not see what it has not said yet: those scores become −∞, and their weight 0.", "how.mask.none": "Nothing is hidden here: every piece may look at all of them. In the decoder's own attention the future is.",
    "how.softmax": "Softmax", "how.softmax.why": "Each row becomes weights between 0 and 1 that sum to 1: where this piece looks.",
    "how.weighted": "Weighted sum", "how.weighted.why": "The head's output for a piece is the mean of the values, weighted by where it looks.", "how.weighted.first": ", first number:", "how.weighted.rest": "(the others)",
    "how.concat": "Heads together", "how.concat.why": "{heads} heads look in different ways. Their outputs are laid side by side, and W^{O} mixes them into d_{model} = {d_model} values.",
    "how.add": "Add & norm", "how.add.why": "What attention found is added to what came in, so nothing is lost; then every row is brought to mean 0 and variance 1, with a learned gain and bias.", "how.add.pre": "What was found is added to what came in, so nothing is lost. This model normalises before each sub-layer instead of after it.",
    "how.ff": "Feed-forward", "how.ff.why": "Each position by itself: to d_{ff} = {d_ff} values, negatives to 0, and back to {d_model}.", "how.ff.other": "Each position by itself: to d_{ff} = {d_ff} values, through {activation}, and back to {d_model}.", "how.ff.experts": "Each position by itself goes through the few experts that a gate chooses for it, of {experts}.",
    "how.add2": "Add & norm, again", "how.add2.why": "The same frame around the feed-forward network. This is the output of layer {layer}; the next layer begins with it.",
    "how.next": "Softmax over the vocabulary", "how.next.why": "The decoder's last output is compared with the vector of each of the {vocabulary} pieces; softmax makes probabilities of the products. These are the likeliest next pieces.",
  },
  ko: {
    "views": "화면", "tab.translate": "번역", "tab.attention": "어텐션", "tab.how": "작동 원리", "tab.parse": "구문 분석",
    "language": "언어", "theme": "색", "theme.light": "밝게", "theme.auto": "자동", "theme.dark": "어둡게",
    "unreachable": "서버가 응답하지 않습니다.", "key": "API 키", "use": "사용", "model": "모델",
    "type": "문장을 입력하세요", "source": "번역할 글", "target": "번역", "target.hint": "입력하는 대로 여기에 번역이 나타납니다.", "example": "예문 넣기",
    "confidence": "맞을 확률 {share}", "issue.language": "{language}로 쓴 글 같습니다. 이 모델은 {source}를 번역합니다.", "issue.item": "“{item}”이(가) 제대로 옮겨지지 않았을 수 있습니다.", "issue.doubtful": "일부는 제대로 번역되지 않았습니다.",
    "alternatives": "다른 번역", "score": "로그 확률 / 길이 벌점", "end": "(끝)",
    "correct": "번역 고치기", "correct.keep": "고친 번역 남기기", "correct.cancel": "취소", "correct.consent": "고친 문장은 이 서버의 {file}에 보관되어 이후의 번역과 학습에 쓰입니다.", "correct.kept": "고친 번역을 보관했고, 이제부터 씁니다.", "correct.same": "바뀐 것이 없어 보관하지 않았습니다.",
    "glossary": "용어집", "glossary.hint": "house = Gebäude", "glossary.how": "한 줄에 하나씩: 원문의 말, =, 번역에 쓸 말.",
    "sentence": "문장", "sentence.none": "들여다볼 문장을 입력하세요.", "look": "보기",
    "part": "어텐션", "part.encoder": "인코더", "part.decoder": "디코더", "part.cross": "교차", "layer": "층", "head": "헤드",
    "look.encoder": "원문의 각 단어가 원문의 어디를 보는지.", "look.decoder": "디코더가 다음 단어를 말하려고 이미 말한 것의 어디를 보는지.", "look.cross": "디코더가 단어를 말하려고 원문의 어디를 보는지.",
    "several": "여러 헤드", "heads": "모든 헤드", "heads.axis": "위에서 아래로 층, 왼쪽에서 오른쪽으로 헤드",
    "layer.all": "{layer}층의 모든 헤드", "head.of": "{layer}층 {head}번 헤드",
    "matrix": "행렬", "matrix.mean": "행렬, 고른 헤드의 평균", "matrix.of": "{heads}의 어텐션 가중치", "looks": "“{text}” → {best}",
    "switch.off": "끄기", "switch.on": "켜기", "switch.on.one": "{head} 켜기", "switch.all": "모두 켜기", "off": "꺼진 헤드",
    "again": "이 헤드 없이 다시 번역", "before": "모든 헤드로", "after": "끄고 나서", "unchanged": "번역이 그대로입니다.",
    "beam": "빔 탐색", "beam.how": "단계마다 모든 가설이 한 조각씩 길어지고, 가장 좋은 것만 남습니다. 숫자는 로그 확률의 합이고, 끝난 가설에서는 그 합을 길이 벌점으로 나눈 값입니다.",
    "beam.size": "빔", "beam.step": "단계", "beam.at": "{last}단계 중 {step}단계", "beam.hypothesis": "가설", "beam.piece": "조각의 log P", "beam.total": "합", "beam.fate": "",
    "fate.kept": "계속", "fate.ended": "끝", "fate.dropped": "버림", "previous": "이전", "next": "다음",
    "parse.type": "분석할 문장을 입력하세요", "parse.sentence": "분석할 문장", "parse.hint": "입력하는 대로 여기에 나무가 나타납니다.", "parse.confidence": "신뢰도 {share} %", "parse.confidence.what": "파서 동작 하나의 확률, 기하 평균", "loading": "모델을 읽는 중 …", "parse.brackets": "괄호 표기",
    "how.steps": "단계", "how.map": "{name}의 색 그림", "how.all": "앞의 숫자 몇 개, 색은 {columns}개 모두", "how.first": "앞의 숫자 몇 개, 색은 {columns}개 중 {shown}개",
    "how.word": "행", "how.key": "보는 곳", "how.bos": "<BOS>", "how.after": "다음 조각 앞", "how.logit": "로짓 {logit}",
    "how.pieces": "문장을 조각으로", "how.pieces.why": "모델은 단어가 아니라 조각을 읽습니다. 토크나이저는 조각 {vocabulary}개를 알고, 각각에 번호를 줍니다. 점은 앞 단어에 이어지는 조각을 뜻합니다.",
    "how.pieces.decoder": "디코더는 <BOS>와 지금까지 말한 것을 번호가 있는 조각으로 읽습니다. 이어지는 행의 이름은 마지막으로 읽은 조각이고, 그 행에서 다음 조각을 예측합니다.",
    "how.embedding": "임베딩", "how.embedding.why": "번호마다 학습된 벡터가 있습니다. 값은 d_{model} = {d_model}개이고, 다음에 더할 위치 값에 묻히지 않도록 √d_{model}을 곱합니다.",
    "how.positions": "위치 인코딩", "how.positions.why": "어텐션만으로는 순서를 알 수 없습니다. 그래서 위치마다 사인과 코사인의 무늬를 줍니다. 앞 차원은 빠른 파동, 뒤 차원은 느린 파동입니다.",
    "how.positions.learned": "어텐션만으로는 순서를 알 수 없습니다. 이 모델은 위치마다 벡터를 학습했습니다.", "how.positions.inside": "이 모델은 여기서 아무것도 더하지 않습니다. 위치는 어텐션 안에서 작용합니다.",
    "how.sum": "임베딩 더하기 위치", "how.sum.why": "이 합이 첫 층으로 들어갑니다. 고른 층이 읽는 값은 그 아래 층들을 지나온 것입니다.", "how.sum.layer": "{layer}층이 읽는 x",
    "how.qkv": "쿼리, 키, 값", "how.qkv.why": "학습된 행렬 셋이 조각마다 벡터 셋을 만듭니다. {head}번 헤드에서는 각각 d_{k} = {d_k}개의 값입니다. 쿼리는 묻고, 키는 그 물음에 답하고, 값은 전해집니다.",
    "how.qkv.cross": "쿼리는 디코더에서, 키와 값은 인코더의 출력 m에서 옵니다. 번역의 조각마다 원문 전체에 묻습니다.",
    "how.scores": "점수", "how.scores.why": "쿼리와 키가 얼마나 맞는지는 내적이 말해 줍니다. 조각의 쌍마다 숫자 하나입니다.",
    "how.scaled": "스케일링", "how.scaled.why": "√d_{k} = {root}로 나눕니다. 긴 벡터의 내적은 커지고, 값이 크면 softmax의 기울기가 거의 사라집니다.", "how.scaled.bias": "√d_{k} = {root}로 나눈 뒤, 이 헤드가 거리마다 학습한 b를 더합니다.",
    "how.mask": "마스크", "how.mask.why": "디코더는 아직 말하지 않은 것을 볼 수 없습니다. 그 점수는 −∞가 되고, 가중치는 0이 됩니다.", "how.mask.none": "여기서는 가리는 것이 없습니다. 모든 조각이 모든 조각을 볼 수 있습니다. 디코더 자신의 어텐션에서는 미래가 가려집니다.",
    "how.softmax": "소프트맥스", "how.softmax.why": "각 행이 0과 1 사이의 가중치가 되고, 합은 1입니다. 이 조각이 어디를 보는지입니다.",
    "how.weighted": "가중합", "how.weighted.why": "조각에 대한 헤드의 출력은 값들의 평균이며, 보는 만큼 가중됩니다.", "how.weighted.first": ", 첫 숫자:", "how.weighted.rest": "(나머지)",
    "how.concat": "헤드를 이어 붙이기", "how.concat.why": "헤드 {heads}개가 서로 다르게 봅니다. 그 출력을 나란히 놓고, W^{O}가 d_{model} = {d_model}개의 값으로 섞습니다.",
    "how.add": "더하고 정규화", "how.add.why": "어텐션이 찾은 것을 들어온 것에 더하므로 잃는 것이 없습니다. 그다음 각 행을 평균 0, 분산 1로 맞추고, 학습된 이득과 편향을 적용합니다.", "how.add.pre": "찾은 것을 들어온 것에 더하므로 잃는 것이 없습니다. 이 모델은 하위 층 뒤가 아니라 앞에서 정규화합니다.",
    "how.ff": "피드포워드", "how.ff.why": "위치마다 따로: d_{ff} = {d_ff}개의 값으로 늘리고, 음수는 0으로, 다시 {d_model}개로.", "how.ff.other": "위치마다 따로: d_{ff} = {d_ff}개의 값으로 늘리고, {activation}를 거쳐, 다시 {d_model}개로.", "how.ff.experts": "위치마다 따로, 게이트가 전문가 {experts}명 중에서 고른 몇을 지납니다.",
    "how.add2": "다시 더하고 정규화", "how.add2.why": "피드포워드에도 같은 틀입니다. 이것이 {layer}층의 출력이고, 다음 층은 여기서 시작합니다.",
    "how.next": "어휘에 대한 소프트맥스", "how.next.why": "디코더의 마지막 출력을 조각 {vocabulary}개의 벡터와 하나씩 견줍니다. softmax가 그 내적을 확률로 만듭니다. 아래는 가장 그럴듯한 다음 조각입니다.",
  },
};

const STORED = "dragoman-language";
let chosen = null;

function stored() {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null; // a file may not be allowed to keep anything
  }
}

export function language() {
  chosen ??= stored() ?? (navigator.language.startsWith("ko") ? "ko" : "en");
  return chosen in TEXTS ? chosen : "en";
}

export function setLanguage(code) {
  chosen = code;
  try {
    localStorage.setItem(STORED, code);
  } catch {
    // it holds until the page is left
  }
}

export function localize(name, values) {
  const text = TEXTS[language()][name] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, key) => (values && key in values ? (typeof values[key] === "number" ? values[key].toLocaleString() : values[key]) : whole));
}

// The name of a language in the language of the page.
export function languageName(code) {
  try {
    return new Intl.DisplayNames([language()], { type: "language" }).of(code);
  } catch {
    return code;
  }
}
