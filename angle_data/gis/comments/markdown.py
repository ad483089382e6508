"""Blanks what in a comment is not in its writer's own words; offsets stay, and every step is linear."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from angle_data.gis.comments.boilerplate import (
    CHECKBOX,
    HEADING_QUESTION,
    HTML_COMMENT,
    IMPORTED,
    SEARCHED,
    TICKED_DUPLICATE,
)
from angle_data.gis.comments.references import OTHER

# Finds: "<!-- filled in by the template -->"
_COMMENT = re.compile(rf"(?<!`){HTML_COMMENT}", re.DOTALL)
# Runs of backticks pair with the next run of equal length, not across a blank line (CommonMark 6.1).
# Finds: "``a`b``"
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\n).){1,1000}?(?<!`)\1(?!`)", re.DOTALL)
# Finds: "```python"
_FENCE = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(`{3,}(?=[^`]*$)|~{3,})")
# Finds: "> Duplicate of #5"
_QUOTE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,2}[.)])[ \t]+)?>(?!=)")
# Finds: "- item"
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d{1,2}[.)])[ \t]")
# Finds: "On Monday Jon wrote:"
_MAIL = re.compile(
    r"^[ \t]*(?:On|Am|Le|El|Il|Em|Op|Den|Dnia|W dniu|На|В|在)\b[^\n]{3,200}(?:\n[^\n]{1,200}){0,2}?(?:wrote|"
    r"a écrit|escribió|ha scritto|escreveu|写道|寫道|(?:schrieb|schreef|skrev|napisał|писал)[^\n:]{0,80}"
    r"\n?[^\n:]{0,80})[ \xa0]{0,2}[:：][ \t]*$|^[ \t]*\d{4}[^\n]{8,120}<[^\n<>]{3,80}@[^\n<>]{3,80}"
    r">[^\n:]{0,20}:[ \t]*$|^[ \t]*-{2,}[ \t]*(?:Original Message|Original-Nachricht|Ursprüngliche Nachricht|"
    r"Forwarded message|Message d'origine|Mensaje original|Messaggio originale|Mensagem original)[ \t]*-{2,}"
    r"[ \t]*$|^(?:From|Von|De|Da|发件人)[ \t]?[:：][^\n]{2,200}\n(?:[^\n]{0,200}\n)?(?:Sent|Date|To|Subject|"
    r"Gesendet|Datum|An|Betreff|Envoyé|Enviado|Inviato|发送时间|日期|收件人)[ \t]?[:：]|^[ \t]*(?:—|--|–|"
    r"_{3,})[ \t]*\n(?:Reply to this email|You are receiving this|View it on GitHub)",
    re.MULTILINE,
)
# Finds: "<details open>"
_BLOCK_TAG = re.compile(
    r"<(/?)(pre|code|blockquote|details|kbd|samp|tt|del|s|strike|script|style)\b[^<>]{0,300}>", re.IGNORECASE
)
# Finds: "~~Duplicate of #5~~"
_STRIKE = re.compile(r"~~(?=\S)[^~\n]{1,1000}~~")
# Finds: "\"dup of #5\""
_SPEECH = re.compile(
    r"\"[^\"\n]{3,300}\"|“[^”\n]{3,300}”|«[^»\n]{3,300}»|„[^“”\n]{3,300}[“”]|「[^」\n]{3,300}」"
)
# Finds: "tracked"
_SPEECH_MARKER = re.compile(r"dup|track|favou?r|same|clos|doublon|дубл|重复|重複|중복", re.IGNORECASE)
# Finds: "#5"
_SPEECH_REFERENCE = re.compile(r"#\d|/issues/\d")
# These stand for references in marked text; nobody writes them.
# Finds: "\ue000"
_PRIVATE_USE = re.compile("[\ue000-\ue003]")
# Finds: "x"
_PRINTED = re.compile(r"[^\n]")


def own_words(body: str) -> str:
    """Return `body` with everything blanked that its writer does not say in their own words.

    Blanked are: fenced, inline and indented code; HTML comments; `>` and `<blockquote>` quotations; mails
    quoted without `>`; `<details>` blocks; task-list lines, template questions; struck text; and reported
    speech in quotation marks that holds a marker of its own. Line breaks stay.
    """
    text = _PRIVATE_USE.sub(" ", body.replace("\r", " ").replace("\xa0", " "))
    text = _COMMENT.sub(_blanked, text)
    text = _mask_lines(text, body).replace("\t", " ")
    text = _CODE.sub(_code, text)
    text = _blank(text, _block_tags(text))
    text = _STRIKE.sub(_blanked, text)
    text = _blank(text, _mails(text))
    speeches = (match for match in _SPEECH.finditer(text) if _SPEECH_MARKER.search(match[0]))
    return _blank(text, (match.span() for match in speeches if _SPEECH_REFERENCE.search(match[0])))


def _blanked(match: re.Match[str]) -> str:
    return _PRINTED.sub(" ", match[0])


def _code(match: re.Match[str]) -> str:
    """What stands for inline code: something, so that what is said of it is not said of what follows."""
    return OTHER + _PRINTED.sub(" ", match[0])[1:]


def _blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end in spans:
        parts += (text[last:start], _PRINTED.sub(" ", text[start:end]))
        last = end
    return "".join((*parts, text[last:]))


def _mask_lines(text: str, body: str) -> str:
    """Blank whole lines: fences, quotes, task lists, template questions, code indented in `body`."""
    lines = text.split("\n")
    written = body.split("\n")
    fence = ""
    after_blank, in_list, in_code = True, False, False
    for position, line in enumerate(lines):
        blank = not line.strip()
        opening = _FENCE.match(line)
        if fence:
            closing = line.strip()
            if closing.startswith(fence) and not closing.strip(fence[0]):
                fence = ""
            drop = True
        elif opening:
            fence, drop = opening[1], True
        else:
            indented = written[position].startswith(("    ", "\t")) and not in_list and not blank
            in_code = indented and (after_blank or in_code)
            sign, searched = line[:12], "uplicate" in line and SEARCHED.match(line)
            ticked = "[" in sign and TICKED_DUPLICATE.match(line)
            if ticked:
                lines[position] = " " * ticked.end(1) + line[ticked.end(1) :]
            boxed = "[" in sign and not ticked and CHECKBOX.match(line)
            quoted = (">" in sign and _QUOTE.match(line)) or ("*" in sign and IMPORTED.match(line))
            drop = bool(in_code or quoted or boxed or searched or HEADING_QUESTION.match(line))
        if not blank:
            in_list = bool(_BULLET.match(line)) or (in_list and line.startswith(" "))
        after_blank = blank or (after_blank and drop)
        if drop:
            lines[position] = " " * len(line)
    return "\n".join(lines)


def _block_tags(text: str) -> Iterator[tuple[int, int]]:
    """Elements that hold code, quotations or folded text, from the outermost opening tag to its end."""
    name, depth, start = "", 0, 0
    for match in _BLOCK_TAG.finditer(text):
        tag = match[2].lower()
        if not depth and not match[1]:
            name, depth, start = tag, 1, match.start()
        elif depth and tag == name:
            depth += -1 if match[1] else 1
            if not depth:
                yield start, match.end()
    if depth and name in ("details", "blockquote", "pre"):
        yield start, len(text)


def _mails(text: str) -> Iterator[tuple[int, int]]:
    """A quoted mail: to the end, or its header alone where an answer may stand below a `>` quotation."""
    for match in _MAIL.finditer(text):
        # A quotation that was marked with `>` is blanked by now.
        below = text[match.end() : match.end() + 400].split("\n")[1:4]
        filled = [line for line in below if len(line) > 1 or line.strip()]
        if not filled or filled[0].strip():
            yield match.start(), len(text)
            return
        yield match.span()
