"""Cleans a question without a model: Unicode hygiene, and rules that take out English and French small talk.

Both keep what a search needs: words are never changed, only removed, and a rule applies only if the text
around it shows that the words are not part of the question ("Hello, how do I…", not "hello world in C").
Digressions ("I'm on the train…") are left alone: telling them from context takes a model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

# Joiners that change how some scripts are read; every other format character is invisible noise in a query.
_JOINERS = "\u200c\u200d"
_TAIL = 200  # characters at the end in which thanks and signatures are looked for
_WORD = re.compile(r"\w")
# Pictographs with their modifiers, regional indicators, and separate western emoticons.
_EMOJI = re.compile(
    r"(?:[\u2600-\u27BF\u2B05-\u2B07\u2B1B\u2B1C\u2B50\u2B55\U0001F000-\U0001FAFF]"
    r"[\uFE0E\uFE0F\u200D\u20E3]*)+|[\uFE0E\uFE0F\u20E3]|(?<!\S)[:;=]'?-?[()DPp|/*](?!\S)"
)
# What may stand between small talk and the question; a dot or a hyphen only before a space (".NET", "-5").
_MARK = r"\s*(?:[,;:!…—–]|[.\-](?=[\s.\-]|\Z))"
_GAP = rf"(?:{_MARK})*(?:\s+|\Z)"
_PAUSE = rf"(?:{_MARK})+\s*"  # at least one mark
_SENTENCE = rf"[^?]{{0,80}}?{_PAUSE}"  # the rest of a short sentence that asks nothing
# Words that open a question: small talk before any of them needs no comma.
_OPENS = (
    r"(?=(?:how|what|who|whom|whose|which|when|where|why|can|could|would|will|should|is|are|was|were|do|does|"
    r"did|has|have|i|i['’]\w+|we|quick|quickly|just|please|so|sorry|comment|quel(?:le)?s?|qui|que|quand|où|"
    r"pourquoi|combien|est-ce|qu['’]\w+|je|j['’]\w+|on|nous|peux-tu|pouvez-vous|pourriez-vous|pourrais-tu|"
    r"savez-vous|sais-tu|petite?|juste|désolée?)\b)"
)
_GREETING = (
    r"(?:hi|hello|hey|hiya|greetings|good (?:morning|afternoon|evening)|bonjour|bonsoir|salut|coucou|"
    r"dear (?:all|team|colleagues|sir or madam)|chers? (?:tous|collègues))"
    r"(?:,? (?:there|everyone|everybody|all|team|guys|folks|again|madame|monsieur|à tous|à toutes|à vous|"
    r"tout le monde|l['’]équipe))?"
)
_OPENING = (
    r"(?:so|well|ok|okay|alright|anyway|basically|actually|please|alors|bon|ben|bah|bref|voilà"
    r"|en fait|du coup|s['’]il (?:vous|te) pla[iî]t|svp|stp)"
)
_PLEASE = r"s['’]il (?:vous|te) pla[iî]t|svp|stp"
_NAMED = "".join(
    f"(?<!{word})" for word in ("dit-on", "dire", "écrire", "écrit", "écrit-on", "signifie", "traduire")
)
"""Words before a French "please" that is a topic of the question and not a courtesy."""
_BREAK = r"(?:(?<=[.!?,;:…—–\-\n])\s*|\A)"  # punctuation before it, or nothing but it
_END = r"[\s.!,;…]*\Z"
_FILLERS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"(?<![\w'’-])(?:[Uu]mm?|[Uu]hh?|[Ee]rmm?|[Hh]mm+|[Ee]uhh?|[Hh]euu?)(?![\w'’-])[,.…]*"), " "),
    (
        re.compile(
            r"\s*,\s*(?:you know|i mean|like|kind of|sort of|du coup|en fait|genre|quoi|tu vois|vous voyez)"
            r"\s*,",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"(?<!\w)kinda\s+", re.IGNORECASE), ""),
)
_CLOSING = (
    r"(?:best|kind|warm) (?:regards|wishes)|regards|sincerely|yours (?:sincerely|faithfully|truly)"
    r"|(?:bien )?cordialement|sincères salutations|bien à (?:vous|toi)|à bientôt|amicalement"
)
_DASHED = re.compile(r"\n-- ?\n.*\Z", re.DOTALL)  # the line that mail programs put above a signature
_SIGNATURES: Sequence[re.Pattern[str]] = (
    re.compile(
        r"\s*(?:sent from my \w+(?: \w+)?|get outlook for \w+|envoyé (?:de|depuis) mon \w+(?: \w+)?)[\s.]*\Z",
        re.IGNORECASE,
    ),
    # A closing formula, and after a comma or on the next line at most four words: a name.
    re.compile(rf"{_BREAK}(?:{_CLOSING})(?:\s*[,.!\n—–][\s,.!—–]*(?:[\w.'’-]+\s*){{0,4}})?\Z", re.IGNORECASE),
)


def hygiene(text: str, *, keep_lines: bool = False) -> str:
    """Return a text in Unicode NFC, without control or invisible format characters, with single spaces.

    Applying it twice changes nothing more.
    """
    kept = "".join(_clean(character) for character in text)
    composed = unicodedata.normalize("NFC", kept)
    if not keep_lines:
        return " ".join(composed.split())
    return "\n".join(" ".join(line.split()) for line in composed.splitlines()).strip()


def _clean(character: str) -> str:
    category = unicodedata.category(character)
    if character.isspace():
        return character
    if category in ("Cc", "Cs") or (category == "Cf" and character not in _JOINERS):
        return ""
    return character


def denoise(text: str) -> str:
    """Take greetings, lead-ins, fillers, thanks, emoji and a closing signature out of a question.

    English and French are handled together, as questions mix them. The order is: signature, emoji, then what
    stands before the question and after it, until nothing more applies; applying it twice changes nothing
    more.
    """
    lined = hygiene(text, keep_lines=True)
    left = hygiene(_EMOJI.sub(" ", _without_signature(lined)))
    left = _repeat(lambda text: hygiene(_once(text)), left)
    return left if _WORD.search(left) else ""


def _once(text: str) -> str:
    """Apply every rule in turn; the result is shorter or the same."""
    text = _without_signature(text)
    for pattern, instead in _FILLERS:
        text = pattern.sub(instead, text)
    text = _EMOJI.sub(" ", text).strip()
    text = _repeat(lambda left: _cut(_BEFORE, left, at_start=True), text)
    return _repeat(lambda left: _cut(_AFTER, left), text)


def _without_signature(text: str) -> str:
    return _repeat(lambda left: _cut(_SIGNATURES, left), _DASHED.sub("", text))


def _cut(patterns: Sequence[re.Pattern[str]], text: str, *, at_start: bool = False) -> str:
    """Remove the first match of each pattern, at the start or within the last `_TAIL` characters."""
    for pattern in patterns:
        match = pattern.match(text) if at_start else pattern.search(text, max(0, len(text) - _TAIL))
        if match:
            text = text[: match.start()] + text[match.end() :]
    return text


def _repeat(step: Callable[[str], str], text: str) -> str:
    """Apply a step that only removes until it removes nothing."""
    while (shorter := step(text)) != text:
        text = shorter
    return text


def _starts(words: str, then: str) -> re.Pattern[str]:
    return re.compile(rf"\A(?:{words})(?!\w){then}", re.IGNORECASE)


_BEFORE: Sequence[re.Pattern[str]] = (
    _starts(_GREETING, rf"(?:{_PAUSE}|\s+{_OPENS}|\Z)"),
    # Marks that are left where something was removed before them.
    re.compile(r"\A[,;!…—–.:\-]+\s+"),
    _starts(
        r"(?:just )?(?:an? )?(?:quick|simple|random|small|short|silly|stupid)(?: little)? question"
        r"|(?:juste )?(?:une )?(?:petite |simple )?question(?: rapide| bête| simple)?"
        r"|(?:i have|i['’]ve got|j['’]ai)(?: just| juste)? (?:an?|une)"
        r"(?: quick| simple| small| petite| simple)? question(?: rapide| for you| pour vous)?",
        _PAUSE,
    ),
    _starts(r"(?:i['’]m |i am )?sorry (?:for|about|to|if)|désolée? (?:de|pour|si)", _SENTENCE),
    _starts(r"sorry|excuse me|pardon|excusez-moi|excuse-moi|désolée?", _PAUSE),
    _starts(
        r"i (?:was|am|have been) (?:just )?(?:wondering|curious)(?: if| whether| about)?"
        r"|i['’]m (?:just )?(?:wondering|curious)(?: if| whether| about)?"
        r"|i(?: would|['’]d) (?:just )?(?:like|love) to know(?: if| whether)?"
        r"|i (?:just )?(?:want|wanted|need) to know(?: if| whether)?"
        r"|(?:does|do) (?:anyone|anybody|you) (?:happen to )?know(?: if| whether)?"
        r"|(?:can|could|would|will) (?:you|someone|anyone)(?: please| kindly)?"
        r" (?:tell me|explain to me|let me know)(?: if| whether| about)?(?: please)?"
        r"|(?:please )(?:tell me|explain to me|let me know)(?: if| whether| about)?"
        r"|je me demand(?:e|ais)(?: juste)?(?: si)?"
        r"|(?:j['’]aimerais|je voudrais|je souhaiterais|je veux)(?: bien| juste)? savoir(?: si)?"
        r"|(?:savez-vous|sais-tu|quelqu['’]un sait|est-ce que (?:vous savez|tu sais|quelqu['’]un sait))"
        r"(?: si)?"
        r"|(?:est-ce que )?(?:pourriez-vous|pouvez-vous|pourrais-tu|peux-tu|vous pourriez|vous pouvez|"
        r"tu pourrais|tu peux),?(?: s['’]il (?:vous|te) pla[iî]t,?| svp,?| stp,?)?"
        r" (?:me dire|m['’]expliquer|m['’]indiquer)(?: si)?",
        _GAP,
    ),
    _starts(rf"{_OPENING}(?: {_OPENING})*", _PAUSE),
)


def _ends(words: str) -> re.Pattern[str]:
    return re.compile(rf"{_BREAK}(?:{words}){_END}", re.IGNORECASE)


_AFTER: Sequence[re.Pattern[str]] = (
    _ends(
        r"(?:many )?thanks(?: a lot| so much| very much| again| for (?:your|the|any) help)?|thx|ty"
        r"|thank you(?: (?:all|very much|so much|again|for (?:your|the|any) help))?|cheers|please|pls"
        r"|(?:un grand )?merci(?: beaucoup| bien| à (?:tous|vous)| pour (?:votre|ton|l['’]) ?aide)?"
        r"|s['’]il (?:vous|te) pla[iî]t|bonne (?:journée|soirée)(?: à (?:tous|vous))?"
        r"|have a (?:nice|good|great) (?:day|evening|weekend)"
        r"|any help (?:is|would be|will be) (?:much |greatly )?appreciated"
    ),
    re.compile(
        rf"\s*[,;—–-]?\s*(?<!\w)(?:(?:many )?thanks (?:so much )?in advance|thank you in advance"
        rf"|(?:je vous remercie |merci )(?:beaucoup )?(?:d['’]|par )avance|svp|stp){_END}",
        re.IGNORECASE,
    ),
    re.compile(r"(?<=[?!.])\s*[,;:—–-]+\s*\Z"),
    # Before the question mark: after a comma, and in French also without one.
    re.compile(rf"(?:\A|\s*[,;—–]\s*)(?:{_PLEASE}|please|pls)(?=\s*\?[\s.!?…]*\Z)", re.IGNORECASE),
    re.compile(rf"{_NAMED}\s+(?:{_PLEASE})(?=\s*\?[\s.!?…]*\Z)", re.IGNORECASE),
)
