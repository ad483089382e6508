"""Removes what an issue should never have held: secrets of known shapes, e-mail addresses, logins.

Each find is replaced by a placeholder that says what stood there. Shapes are known ones: a password in plain
prose is not recognised, and neither are people's names.
"""

from __future__ import annotations

import re

__all__ = ["scrub"]

_SHAPES = re.compile(
    r"""-----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]{0,30}PRIVATE\ KEY-----|\Z)
    | \bgh[pousr]_[A-Za-z0-9]{16,255}
    | \bgithub_pat_[A-Za-z0-9_]{20,255}
    | \bglpat-[A-Za-z0-9_-]{20,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{30,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \b[sr]k[-_](?:live_|test_|proj-|ant-)?[A-Za-z0-9_-]{20,}
    | \bnpm_[A-Za-z0-9]{30,}
    | \bpypi-[A-Za-z0-9_-]{50,}
    | \bhf_[A-Za-z0-9]{30,}
    | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}""",
    re.VERBOSE | re.DOTALL,
)
_NAMED = re.compile(
    r"""(\b(?:[a-z0-9]{1,30}[_-]){0,4}
        (?:password|passwd|secret|api_?-?key|access_?-?key|(?:access|auth|api|bearer|secret)[_-]?token)\b
        ["']?\s{0,3}[:=]\s{0,3}["']?)(?!\[)[^\s"'<>,;]{8,512}""",
    re.IGNORECASE | re.VERBOSE,
)
_BEARER = re.compile(
    r"(\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?\w{2,10} )[^\s\"'<>]{8,2048}", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/:@]{1,100}:[^\s/@]{1,200}@", re.IGNORECASE)
_MAIL = re.compile(
    r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,4}\.[A-Za-z]{2,20}(?![\w-])"
)
_LOGIN = re.compile(
    r"(`[^`\n]{1,500}`)|(?<![\w/.@-])@[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:\[bot\])?(?![\w.@-]{0,100}[/(@])(?![\w-])"
)
_PROFILE = re.compile(r"(\bgithub\.com/)(?!\[)[A-Za-z0-9-]{1,39}(?=[\s)>\].,;:'\"]|/?$)", re.MULTILINE)


def scrub(text: str, *, code: bool = False) -> tuple[str, frozenset[str]]:
    """Return `text` without secrets, e-mail addresses and logins, and which of these it had.

    In `code` an `@name` is an annotation rather than a login and stays.
    """
    found: set[str] = set()

    def replace(pattern: re.Pattern[str], by: str, name: str) -> None:
        nonlocal text
        text, count = pattern.subn(by, text)
        if count:
            found.add(name)

    replace(_SHAPES, "[secret]", "secrets")
    replace(_NAMED, r"\1[secret]", "secrets")
    if "uthorization" in text or "UTHORIZATION" in text:
        replace(_BEARER, r"\1[secret]", "secrets")
    if "@" in text:
        replace(_URL_PASSWORD, r"\1[secret]@", "secrets")
        replace(_MAIL, "[email]", "e-mails")
    if not code:
        bare = text
        if "@" in text:
            text = _LOGIN.sub(lambda match: match[1] or "@user", text)
        if "github.com/" in text:
            text = _PROFILE.sub(r"\1[user]", text)
        if text != bare:
            found.add("logins")
    return text, frozenset(found)
