"""The languages of training texts, and texts in other ones."""

import pytest

from rationalizer.data import generated_stays, make_examples
from rationalizer.text.language import Languages

GERMAN = [
    "Das Zimmer war sauber, aber das Personal war sehr unfreundlich.",
    "Nach zwei Tagen war der Akku leer und niemand antwortete auf meine Mails.",
    "Ich würde dieses Hotel auf keinen Fall noch einmal buchen.",
    "Die Schauspieler sind großartig, das Drehbuch leider überhaupt nicht.",
    "Leider kam das Paket erst nach drei Wochen an.",
]
OTHERS = {
    "French": "La chambre était propre mais le personnel très désagréable.",
    "Spanish": "La habitación estaba limpia, pero el personal era muy antipático.",
    "Italian": "La camera era pulita ma il personale molto scortese.",
    "Dutch": "De kamer was schoon maar het personeel was erg onvriendelijk.",
    "Polish": "Pokój był czysty, ale personel był bardzo niemiły.",
    "Russian": "Комната была чистой, но персонал был очень грубым.",
    "Japanese": "部屋は清潔でしたが、スタッフはとても失礼でした。",
}
ENGLISH = [
    "The room was spotless but the staff was rude.",
    "Worst. Pizza. Ever. Seriously, avoid avoid avoid!!!",
    "lol ur so dumb tho smh",
    "Oil prices soar to record high",
    "www.example.com 404 error 0x80070057 v2.1.3 build 17763",
]


def one(text):
    return make_examples([text], pairs=False)[0]


@pytest.fixture(scope="module")
def english():
    return Languages.of(generated_stays().train[:100])


def test_english_model(english):
    assert english.codes == ("en",)
    assert {name: english.other_language(one(text)) for name, text in OTHERS.items()} == {n: n for n in OTHERS}
    assert [english.other_language(one(text)) for text in ENGLISH] == [None] * len(ENGLISH)


def test_short_texts_are_not_judged(english):
    assert english.other_language(one("Sehr unfreundliches Personal!")) is None


def test_german_model_accepts_german_and_not_english():
    german = Languages.of(make_examples(GERMAN * 2, pairs=False))
    assert german.codes == ("de",)
    assert [german.other_language(one(text)) for text in GERMAN] == [None] * len(GERMAN)
    assert german.other_language(one("Our breakfast was wonderful and nobody hurried us.")) == "English"


def test_two_languages(english):
    both = Languages.of([*make_examples(GERMAN * 2, pairs=False), *generated_stays().train[:10]])
    assert set(both.codes) == {"de", "en"}
    assert both.other_language(one(GERMAN[0])) is both.other_language(one(ENGLISH[0])) is None
    assert both.other_language(one(OTHERS["French"])) == "French"
    assert both.names in ("German and English", "English and German")


def test_too_few_texts_tell_no_language():
    unknown = Languages.of(make_examples(GERMAN, pairs=False))
    assert unknown == Languages()
    assert unknown.other_language(one(ENGLISH[0])) is None


def test_json(english):
    assert Languages.from_json(english.to_json()) == english
    assert Languages.from_json(None) == Languages()
