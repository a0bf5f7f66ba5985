"""Hygiene and the rules that take small talk out of questions, in English and French."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.pipeline.query.denoise import denoise, hygiene


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("", ""),
        (" \n\t ", ""),
        ("a  b\nc\u00a0d\u3000e", "a b c d e"),
        ("cafe\u0301", "café"),
        ("e\u200b\u0301", "é"),  # what is invisible goes before letters are composed
        ("a\x00b\x07c\x1b[31m", "abc[31m"),
        ("\ufeffBOM\u00ad\u202eend", "BOMend"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # a joiner that is spelling
        ("half\ud83dpair", "halfpair"),
        ("Ⅳ ﬁ ②", "Ⅳ ﬁ ②"),  # composed, not folded
    ],
)
def test_hygiene(text: str, clean: str):
    assert hygiene(text) == clean


@pytest.mark.slow
@given(st.text())
@example("a\x1cb\x85c\u2028d")
@example("\u0301e \u0301")
def test_hygiene_settles_at_once(text: str):
    clean = hygiene(text)
    assert hygiene(clean) == clean
    assert unicodedata.is_normalized("NFC", clean)
    assert clean == " ".join(clean.split())
    clean.encode()  # can be stored and sent


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # The CLQ paper's own examples, §4.4.
        ("Can forests really regulate the climate?", "Can forests really regulate the climate?"),
        (
            "Hi! Quick question: according to science, can forests regulate the climate?",
            "according to science, can forests regulate the climate?",
        ),
        (
            "Hello! Sorry for the kinda random question—could forests actually regulate the climate, or is"
            " that a myth?",
            "could forests actually regulate the climate, or is that a myth?",
        ),
        # English
        ("Hey there how do I merge two frames? Thanks!", "how do I merge two frames?"),
        ("Good morning everyone, is HNSW exact?", "is HNSW exact?"),
        ("um, so, what is 20 °C in °F 😀", "what is 20 °C in °F"),
        ("Could you please tell me whether HNSW is exact?", "HNSW is exact?"),
        ("I was wondering if PQ needs training", "PQ needs training"),
        ("How do I, you know, sort a list, thanks in advance", "How do I sort a list"),
        ("what does uhh this flag do 👩‍💻🙏🏽 :-)", "what does this flag do"),
        ("Ok so, I have a quick question: what is RRF?", "what is RRF?"),
        ("What is RRF?\n\nBest regards,\nJohn Smith", "What is RRF?"),
        ("What is RRF?\n-- \nJohn Smith\nAcme Ltd, +33 1 23 45", "What is RRF?"),
        ("What is RRF?\nSent from my iPhone", "What is RRF?"),
        ("What is RRF? Any help would be appreciated. Thank you so much!", "What is RRF?"),
        ("How do I sort, please?", "How do I sort?"),
        ("How do you say please?", "How do you say please?"),
        # French
        ("Quelle est la capitale, s'il vous plaît ?", "Quelle est la capitale ?"),
        ("Où est la gare s’il te plait ?", "Où est la gare ?"),
        ("Qui a écrit Les Misérables svp ?", "Qui a écrit Les Misérables ?"),
        ("Comment dit-on s'il vous plaît ?", "Comment dit-on s'il vous plaît ?"),
        ("s'il vous plaît ?", ""),
        (
            "Bonjour, est-ce que vous pourriez me dire si les forêts régulent le climat ? Merci d'avance 🙏",
            "les forêts régulent le climat ?",
        ),
        (
            "Salut, euh, du coup, comment on trie un tableau, genre, par date stp",
            "comment on trie un tableau par date",
        ),
        ("Bonsoir à tous ! Petite question : qu’est-ce que le BM25 ?", "qu’est-ce que le BM25 ?"),
        ("J’aimerais savoir combien coûte un index. Merci beaucoup !", "combien coûte un index."),
        ("Désolé pour la question bête, mais où est Lyon ?", "mais où est Lyon ?"),
        ("Où est Lyon ? Bonne journée\nCordialement,\nMarie Dupont", "Où est Lyon ?"),
        ("Je me demandais s'il existe un index exact", "s'il existe un index exact"),
    ],
)
def test_small_talk_goes(text: str, left: str):
    assert denoise(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "hello world in C",
        "Bonjour tristesse résumé",
        "hi-hat pattern in techno",
        "how to say thank you in French",
        "comment dit-on merci en anglais",
        "what does 'best regards' mean",
        "-5 °C in kelvin",
        ".NET garbage collector",
        "!important in CSS",
        "UM campus map",
        "so called gradient descent",
        "well being of nurses",
        "please please me release year",
        "Sorry by Justin Bieber lyrics",
        "does (a:b) parse",
        "sort of a list",
        "quick sort question bank",
        "regards to privacy law",
        "in Spain, regards to privacy law",
        "I'm on the train... is HNSW exact?",  # digressions are left to a model
        "SELECT * FROM t; -- comment",
    ],
)
def test_questions_that_only_look_like_it_stay(text: str):
    assert denoise(text) == text


@pytest.mark.parametrize(
    "text", ["", "Hi", "Hello there!", "Thanks!", "Bonjour à tous", "😀", "Cordialement,\nMarie", "?!"]
)
def test_nothing_but_small_talk_leaves_nothing(text: str):
    assert denoise(text) == ""


PIECES = st.sampled_from(
    [
        "hi", "Hello", ", ", "! ", "... ", " - ", "\n", "\n-- \n", "thanks", "merci", "svp", "quick question",
        "sorry for ", "um", "euh", "like", ", like,", "kinda ", "regards", "Cordialement,", "Marie",
        "can you tell me", "what", " is ", "HNSW", "?", ".", ":", "😀", ":)", "—", " ", "s'il vous plaît",
        "sent from my phone",
    ]
)  # fmt: skip


@given(st.text() | st.lists(PIECES, max_size=14).map("".join))
def test_denoise_settles_at_once_and_only_removes(text: str):
    left = denoise(text)
    assert denoise(left) == left
    assert hygiene(left) == left
    rest = iter(hygiene(text).replace(" ", ""))
    assert all(character in rest for character in left.replace(" ", ""))  # a subsequence


@pytest.mark.parametrize(
    "piece", ["!", "hi, ", "thanks ", ". thanks", "- ", "🙏", ", like,", "\n-- \n", "sorry, ", "a. "]
)
def test_long_repetitions_end(piece: str):
    denoise(piece * 2000)
    denoise("Hello " + piece * 2000 + "x")
