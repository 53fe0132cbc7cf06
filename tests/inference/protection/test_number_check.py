"""Numbers of a translation are those of its source, as the target language writes them."""

from __future__ import annotations

import pytest

from dragoman.inference.protection.number_check import check_numbers
from dragoman.inference.protection.numbers_in_text import localize_number
from dragoman.inference.protection.text_edits import apply_edits

RIGHT = [
    ("fr-en", "15,000 dollars par enfant", "15,000 dollars per child"),
    ("en-de", "on Thursday from 9pm", "am Donnerstag ab 21 Uhr"),
    ("en-de", "at 9 p.m.", "um 21:00 Uhr"),
    ("fr-en", "dans les années 80", "in the 1980s"),
    ("ko-en", "2.0만 해당", "2.0 only"),
    ("ko-en", "그림 1.1을 보세요.", "See Figure 1.1."),
    ("en-de", "Get version 1.1.", "Hol dir Version 1.1."),
    ("de-en", "Siehe Kapitel 3.2.", "See Chapter 3.2."),
    ("ko-en", "1월 1일에", "on January 1st"),
    ("ko-en", "2차 대전", "World War II"),
    ("ko-en", "1만큼 증가", "increases by 1"),
    ("ko-en", "16진수", "hexadecimal number"),
    ("ko-en", "오전 8시 46분에", "at 8:46 a.m."),
    ("en-ko", "at 8:46 a.m.", "오전 8시 46분에"),
    ("ko-en", "5천4백만 명", "54 million people"),
    ("ko-en", "2백만 년 전", "two million years ago"),
    ("ko-en", "5위와 6위", "fifth and sixth"),
    ("en-de", "1 cat and 11th place", "eine Katze und elfter Platz"),
    ("ko-en", "제5조에 따라", "pursuant to Article 5"),
    ("ko-en", "3조 학생", "students of team 3"),
    ("ko-en", "민법 5조 2항", "Civil Code, Article 5, paragraph 2"),
    ("ko-en", "1조 2천억 달러", "1.2 trillion dollars"),
    ("ko-en", "3천 5백 원", "3,500 won"),
    ("ko-en", "1만 2345명", "12,345 people"),
    ("ja-en", "2千億円", "200 billion yen"),
    ("ko-en", "2024년 5월 3일", "May 3, 2024"),
    ("zh-de", "11月16日", "am 16. November"),
    ("ko-en", "2024. 11. 16. 기준", "as of November 16, 2024"),
    ("de-en", "in den 60er Jahren", "in the 1960s"),
    ("de-en", "Am 16.11.2024 um 14:30 Uhr", "On 16 November 2024 at 2:30 p.m."),
    ("de-en", "Am 16.11.2024 um 15 Uhr", "On 16/11/2024 at 3 p.m."),
    ("de-en", "am 24.12. um 8:30 Uhr", "on 24 December at half past eight"),
    ("de-en", "3.000 Menschen", "3 000 people"),
    ("de-en", "3.000 Menschen", "3000 people"),
    ("de-en", "12,5 % und −5,2 °C", "12.5 percent and minus 5.2 degrees"),
    ("de-en", "1,5 Millionen", "1.5 million"),
    ("de-en", "1.500 Millionen", "1.5 billion"),
    ("de-en", "am 3. Mai", "on the third of May"),
    ("de-en", "2/3 der Menge", "two-thirds of it"),
    ("de-en", "99,99 $", "99.99 dollars"),
    ("de-en", "5-10 Uhr", "5 to 10"),
    ("en-de", "He has 2 dogs and 12 cats", "Er hat zwei Hunde und zwölf Katzen"),
    ("en-de", "25 degrees", "fünfundzwanzig Grad"),
    ("en-de", "Python 3.5 is out", "Python 3.5 ist da"),
    ("en-de", "11/16/2024", "16.11.2024"),
    ("en-fr", "1,234,567 people", "1\u202f234\u202f567 personnes"),
    ("en-ko", "1.5 million people", "150만 명"),
    ("en-ko", "1,500,000 people", "150만 명"),
    ("en-ko", "2 dogs", "개 두 마리"),
    ("ko-en", "3억 5천만 명", "350 million people"),
    ("ko-en", "약 3만 5000명", "about 35,000"),
    ("en-cs", "3 dogs", "tři psi"),
    ("en-de", "to win 4-0", "4:0 zu gewinnen"),
    ("en-de", "at 6.30 a.m.", "um 6:30 Uhr"),
    ("en-de", "in 2012 142 crimes", "2012 142 Taten"),
    ("en-de", "at 5:30 p.m.", "um 17:30 Uhr"),
    ("en-de", "at 5:30 p.m.", "um 17.30 Uhr"),
    ("en-de", "at 5:30 PM", "um 5:30 Uhr nachmittags"),
    ("en-de", "tonight at 5:30 p.m.", "heute Abend um 5:30 Uhr"),
    ("en-de", "at 5:30", "um 17:30 Uhr"),
    ("en-de", "at 12:15 a.m.", "um 0:15 Uhr"),
    ("en-de", "at 12 a.m.", "um Mitternacht"),
    ("en-de", "at 12:15 p.m.", "um 12.15 Uhr"),
    ("en-de", "from 5 to 7 p.m.", "von 17 bis 19 Uhr"),
    ("en-de", "from 11 to 3 p.m.", "von 11 bis 15 Uhr"),
    ("en-ko", "at 5:30 p.m.", "오후 5시 30분에"),
    ("en-ko", "at 5:30 p.m.", "17시 30분에"),
    ("en-ko", "at half past 5", "5시 반에"),
    ("ko-de", "오후 5시 30분에", "um 17:30 Uhr"),
    ("ko-en", "오후 5시에", "at 5 p.m."),
    ("de-en", "um 17 Uhr", "at five in the afternoon"),
    ("fr-en", "à 17 h 30", "at 5:30 p.m."),
    ("en-ru", "at 5:30 p.m.", "в 5:30 вечера"),
    ("en-fr", "for 5 hours", "pendant 5 h"),
    ("en-de", "Seat 5 by the door", "Platz 5 am Eingang"),
    ("fr-en", "pendant 1h30", "for 1.5 hours"),
    ("en-fr", "for 1.5 hours", "pendant 1h30"),
    ("en-de", "at 02:30 UTC", "um 0230 UTC"),
    ("en-de", "5.5 kg of rice, 3 km from here", "5,5 Kilo Reis, 3 km von hier"),
    ("en-de", "a 5.5 kg bag", "ein 5,5-kg-Beutel"),
    ("en-de", "16 MB and 3.2 GHz", "16 MB und 3,2 GHz"),
    ("en-fr", "16 MB", "16 Mo"),
    ("en-ko", "5.5 kg of rice", "쌀 5.5킬로그램"),
    ("en-ko", "at 100 km/h", "시속 100km로"),
    ("ko-de", "시속 100km로", "mit 100 km/h"),
    ("en-de", "at 100 km/h", "mit 100 Kilometern pro Stunde"),
    ("en-de", "25 °C", "25°C"),
    ("en-de", "25 °C", "25 Grad"),
    ("en-de", "5 m people", "5 Millionen Menschen"),
    ("en-de", "30 fps", "30 B/s"),
    ("en-ru", "5 kg", "5 кг"),
    ("en-de", "12 to 16 thousand people", "12 bis 16 Tausend Menschen"),
    ("en-de", "12 to 16 thousand people", "12.000 bis 16.000 Menschen"),
    ("en-de", "between 2 and 3 million", "zwischen 2 und 3 Mio."),
    ("de-en", "12.000 bis 16.000 Menschen", "12 to 16 thousand people"),
    ("en-ko", "12 to 16 thousand people", "1만 2천에서 1만 6천 명"),
    ("ko-en", "1~2만 명", "10,000 to 20,000 people"),
    ("en-de", "5 million euros", "5 Mio. Euro"),
    ("en-pl", "5 million people", "5 milionów ludzi"),
]


@pytest.mark.parametrize(("pair", "source", "target"), RIGHT)
def test_what_is_right_is_left_as_it_is(pair: str, source: str, target: str) -> None:
    first, _, second = pair.partition("-")
    report = check_numbers(source, target, (first, second))
    assert (report.edits, report.repaired, report.lost) == ([], [], [])


@pytest.mark.parametrize(
    ("pair", "source", "target", "result"),
    [
        ("de-en", "3.000 Menschen", "3.000 people", "3,000 people"),
        ("de-en", "1.499,00 €", "1.499,00 €", "1,499.00 €"),
        ("de-en", "25.400.000 Dollar", "USD 25.400,000", "USD 25,400,000"),
        ("de-en", "0,5 l", "0,5 l", "0.5 l"),
        (
            "en-de",
            "73,900 people live here",
            "73,900 Menschen leben hier",
            "73.900 Menschen leben hier",
        ),
        ("en-de", "1,168,000 crimes", "1168 000 Taten", "1.168.000 Taten"),
        ("de-en", "79,51 €", "7.9.51 €", "79.51 €"),
        ("en-de", "The price is $1,499.00.", "Es kostet 1,499.00 $.", "Es kostet 1.499,00 $."),
        ("de-en", "1,5-mal so schnell", "1,5 times as fast", "1.5 times as fast"),
        ("fr-en", "1 499,00 en tout", "1 499,00 in all", "1,499.00 in all"),
        ("en-de", "It was −29.7 °C", "Es war −29.7", "Es war −29,7 °C"),
        ("en-de", "It was 29.7°", "Es war 29.7", "Es war 29,7°"),
        ("en-de", "a 3.2 GHz processor", "ein 3.2 GHz Prozessor", "ein 3,2 GHz Prozessor"),
        ("en-de", "It costs $3.50", "Es kostet 3.50 $", "Es kostet 3,50 $"),
        ("en-de", "It is −5.2 °C", "Es sind 5,2 °C", "Es sind −5,2 °C"),
        ("en-de", "5% more", "5 mehr", "5\u00a0% mehr"),
        ("de-en", "für 5 €", "for 5", "for €5"),
        ("en-de", "for $5 million", "für 5 Millionen", "für 5 Millionen\u00a0$"),
    ],
)
def test_spellings_and_signs_are_the_target_languages(
    pair: str, source: str, target: str, result: str
) -> None:
    first, _, second = pair.partition("-")
    report = check_numbers(source, target, (first, second))
    assert apply_edits(target, report.edits) == result
    assert report.lost == []


@pytest.mark.parametrize(
    ("pair", "source", "target", "result"),
    [
        ("en-de", "for 1,499.00 now", "für 1 400 jetzt", "für 1.499,00 jetzt"),
        ("en-de", "for $99.99", "für $99", "für $99,99"),
        ("de-en", "Mitte 2013", "mid-2001", "mid-2013"),
        ("en-de", "3 dogs", "2 Hunde", "3 Hunde"),
        ("de-en", "am 16.11.2024", "on 16.11.204", "on 16.11.2024"),
        ("de-en", "am 3.10.2024", "on 310.2024", "on 3.10.2024"),
        ("en-ko", "version 1.2.3", "버전 12.3", "버전 1.2.3"),
        ("ko-en", "150만 명", "15 million people", "1.5 million people"),
        ("en-de", "1.5 million people", "1.5 Menschen", "1.500.000 Menschen"),
        ("en-de", "It is 5:30 p.m. now", "Es ist jetzt 5:30 Uhr", "Es ist jetzt 17:30 Uhr"),
        ("en-de", "at 12:15 a.m.", "um 12:15 Uhr", "um 0:15 Uhr"),
        ("en-de", "16 MB of it", "16 GB davon", "16 MB davon"),
        ("en-de", "at 100 km/h", "mit 100 km", "mit 100 km/h"),
        ("en-de", "250 g of the program", "250 des Programms", "250 g des Programms"),
        ("en-de", "at 25°C", "bei 25 °F", "bei 25°C"),
        ("en-de", "at 25°F", "bei 25° heute", "bei 25°F heute"),
        ("ko-en", "시속 100km로", "at 100 km", "at 100 km/h"),
        ("en-ko", "25 °C today", "오늘 25", "오늘 25 °C"),
        ("en-de", "at 12:15 p.m.", "um 0.15 Uhr", "um 12:15 Uhr"),
        ("en-de", "at 5 p.m.", "um 5 Uhr morgens", "um 17 Uhr"),
        ("de-en", "um 17:30 Uhr.", "at 5:30 a.m.", "at 5:30 p.m."),
        ("de-en", "um 17 Uhr", "at 5", "at 5 p.m."),
        ("en-ko", "at 5:30 p.m.", "5시 30분에", "오후 5시 30분에"),
        ("ko-en", "오후 5시 30분에", "at 5:30", "at 5:30 p.m."),
        ("de-en", "2,5 Mrd. €", "2.5 €", "2,500,000,000 €"),
        ("en-ko", "5 million people", "사람 5명", "사람 500만명"),
        ("ko-en", "예산은 350만 달러", "350 million dollars", "3.5 million dollars"),
        ("ko-en", "약 80억 명", "around 80 billion", "around 8 billion"),
        ("ko-de", "3만 명", "3 Millionen Menschen", "30.000 Menschen"),
        ("en-ko", "about 7 billion people", "약 7억 명", "약 70억 명"),
        ("en-ko", "for $3.5 million", "$3.5만", "$350만"),
        ("en-ko", "for $1.2 trillion", "하지만 $1.2", "하지만 $1조 2000억"),
        ("en-ja", "in 2020, 1.5 million", "2020年に1.5万", "2020年に150万"),
        ("en-de", "7 billion people", "7 Millionen Menschen", "7.000.000.000 Menschen"),
    ],
)
def test_a_number_from_nowhere_gives_way_to_the_one_that_is_missing(
    pair: str, source: str, target: str, result: str
) -> None:
    first, _, second = pair.partition("-")
    report = check_numbers(source, target, (first, second))
    assert apply_edits(target, report.edits) == result
    assert len(report.repaired) == 1


def test_a_scale_that_is_gone_is_written_out_for_both_ends_of_a_range() -> None:
    report = check_numbers("12 to 16 thousand people", "12 bis 16 Menschen", ("en", "de"))
    assert apply_edits("12 bis 16 Menschen", report.edits) == "12.000 bis 16.000 Menschen"
    assert report.repaired == ["12", "16 thousand"]
    report = check_numbers("in 2012 and 16 million", "2012 und 16", ("en", "de"))
    assert apply_edits("2012 und 16", report.edits) == "2012 und 16.000.000"


def test_units_that_changed_places_change_back() -> None:
    report = check_numbers("5 kg and 3 km", "5 km und 3 kg", ("en", "de"))
    assert apply_edits("5 km und 3 kg", report.edits) == "5 kg und 3 km"
    assert report.repaired == ["5 kg", "3 km"]


def test_both_ends_of_a_range_of_hours_are_of_the_same_half_of_the_day() -> None:
    report = check_numbers("from 5 to 7 p.m.", "von 5 bis 7 Uhr", ("en", "de"))
    assert apply_edits("von 5 bis 7 Uhr", report.edits) == "von 17 bis 19 Uhr"


def test_minutes_that_are_gone_are_missing() -> None:
    for target, language in (("um 14 Uhr", "de"), ("오후에", "ko")):
        report = check_numbers("at 2:30 p.m. today", target, ("en", language))
        assert [token.text for token in report.lost] == ["2:30 p.m."]


def test_what_is_missing_is_said() -> None:
    report = check_numbers("Er zahlt 20 Milliarden in 2004", "He pays in 2004", ("de", "en"))
    assert [token.text for token in report.lost] == ["20"]
    assert report.edits == []


def test_numbers_written_together_are_missing_together() -> None:
    report = check_numbers("It is 50/50, or 1.5–2.5.", "Es ist 50 oder 2,5.", ("en", "de"))
    assert [token.text for token in report.lost] == ["50/50", "1.5–2.5"]
    assert localize_number("1.5–2.5", ("en", "de")) == "1,5–2,5"


def test_a_date_in_pieces_is_missing() -> None:
    report = check_numbers("on 11/16/2024", "am 11./16/2024", ("en", "de"))
    assert [token.text for token in report.lost] == ["11/16/2024"]


def test_what_is_hidden_is_not_a_number() -> None:
    report = check_numbers("{12} dogs", "Hunde", ("en", "de"), ([(0, 4)], []))
    assert report.lost == []
    report = check_numbers("17 dogs", "{17} Hunde", ("en", "de"), ([], [(0, 4)]))
    assert len(report.lost) == 1
