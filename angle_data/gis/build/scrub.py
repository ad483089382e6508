"""Removes what an issue should never have held: secrets, addresses, phone numbers, logins, names in paths.

Each find is replaced by a placeholder that says what stood there. Known are the shapes of keys that services
give out, and values that stand behind a telling name; ordinary code such as `password = None` stays. A
password in plain prose is not recognised, and neither are people's names outside paths and addresses.
"""

from __future__ import annotations

import re

_SHAPES = re.compile(
    r"""-----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]{0,30}PRIVATE\ KEY-----|\Z)
    | \bgh[pousr]_[A-Za-z0-9]{16,255}
    | \bgithub_pat_[A-Za-z0-9_]{20,255}
    | \bglpat-[A-Za-z0-9_-]{20,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{30,}
    | \bya29\.[0-9A-Za-z_-]{20,}
    | \bGOCSPX-[0-9A-Za-z_-]{20,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \bxapp-\d-[A-Za-z0-9-]{8,}
    | \bhooks\.slack\.com/[A-Za-z0-9/_-]{20,}
    | \bdiscord(?:app)?\.com/api/webhooks/\d{5,25}/[\w-]{20,}
    | \bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}
    | \bdckr_pat_[A-Za-z0-9_-]{20,}
    | \bdo[opr]_v1_[a-f0-9]{32,}
    | \b\d{8,10}:AA[A-Za-z0-9_-]{32,34}(?![\w-])
    | \b[sr]k[-_](?:live_|test_|proj-|ant-)?[A-Za-z0-9_-]{20,}
    | \bnpm_[A-Za-z0-9]{30,}
    | \bpypi-[A-Za-z0-9_-]{50,}
    | \bhf_[A-Za-z0-9]{30,}
    | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}""",
    re.VERBOSE | re.DOTALL,
)
_NAMES = (
    r"password|passwd|passphrase|pwd|(?<![A-Za-z])pass|secret(?:[_-]?key)?(?:[_-]?base)?|api[_-]?key"
    r"|(?:shared[_-]?)?access[_-]?key|account[_-]?key|private[_-]?key[_-]?id|client[_-]?secret"
    r"|(?:access|auth|api|bearer|secret|refresh|session|bot)[_-]?token|(?<=_)auth"
)
_NO_VALUE = (
    r"(?:none|null|nil|true|false|undefined|str|string|bytes|text|optional|required|invalid|incorrect|hidden"
    r"|changeme|example|password|secret|token|yes|no)\b(?![\w-])"
)
# A value that is no call, index, variable or path, and no name for what it holds.
_START = rf"(?![\[(<${{%*./~\\])(?!{_NO_VALUE})(?![\w.]*[(\[])"
_MIXED = r"(?=[^\s\"'<>,;]{0,60}\d)(?=[^\s\"'<>,;]{0,60}[A-Za-z])"
_UNLIKE_NAMES = r"(?!\S{0,60}(?:pass|secret|token|key|env|conf|self|this|arg|param))"
_VALUE = r"[^\s\"'<>,;()\[\]{}`]{%s,512}"
_TELLING = "pass|pwd|secret|key|token|auth"
_GITHUB = r"(?<![\w.-])(?:www\.)?(?:github|ghe)\.[\w-]{2,40}(?:\.[\w-]{2,40}){0,3}(?::\d{2,5})?/"
_PAGES = (
    r"about|apps|contact|docs|enterprise|explore|features|login|marketplace|notifications|orgs|pricing|search"
    r"|security|settings|site|sponsors|topics|users"
)
_ROBOTS = (
    r"(?:runner|user|users|username|ubuntu|root|node|app|build|shared|public|default|vsts|vagrant)"
    r"\b(?![\w.-])"
)

# What stands there -> patterns, each with hints of which a match needs one, in lower case.
_PATTERNS = {
    r"\1[secret]": (
        # name = "value", whatever is in the quotes; name=value as in a shell; name: value with a digit in it.
        (
            _TELLING,
            rf"((?:{_NAMES})[\"']?\s{{0,3}}[:=]\s{{0,3}}([\"'`]))(?!\2){_START}[^\s\"'`]{{4,512}}(?=\2)",
        ),
        (_TELLING, rf"((?:{_NAMES})=){_START}{_UNLIKE_NAMES}{_VALUE % 8}(?![(\[])"),
        (_TELLING, rf"((?:{_NAMES})[\"']?\s{{0,3}}[:=]\s{{0,3}}){_START}{_MIXED}{_VALUE % 6}"),
        ("token", rf"(\btoken[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?){_START}{_MIXED}[\w.+/=-]{{16,512}}"),
        (
            "-pass|-token|-secret|-api|-auth|-access",
            rf"((?<![\w-])--?(?:password|passwd|pass|token|secret|api-?key|(?:auth|access)-token)[ =][\"']?)"
            rf"{_START}{_MIXED}{_VALUE % 6}",
        ),
        # curl -u user:value
        (
            "-u",
            r"(\b(?:curl|wget|https?)\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:)"
            r"(?![$<\[{])[^\s\"'@]{4,200}",
        ),
        ("sig", r"(\bsig(?:nature)?=)(?=[^\s&\"']{0,60}\d)[\w%+/=-]{12,512}"),
        # Authorization: Bearer value
        (
            "authorization",
            r"(\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:\w{2,10} (?!\[)|(?!\[)(?=[^\s\"'<>]{0,80}\d)))"
            r"[^\s\"'<>$]{8,2048}",
        ),
        ("cookie", r"(\b(?:set-)?cookie[\"']?\s{0,3}:\s{0,3}[\"']?)(?=[\w.-]{1,60}=)[^\n\"']{8,4000}"),
        # postgres://user:value@host
        ("@", r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/:@]{1,100}:[^\s/@]{1,200}(?=@)"),
    ),
    "[email]": (
        (
            "@",
            r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,4}\.[^\W\d_]{2,20}(?![\w-])",
        ),
        # john (at) example.org
        (
            "at)|at |at]",
            r"(?<![\w.+-])[\w.+-]{1,64} ?[\[(] ?at ?[\])] ?[\w-]{1,63}"
            r"(?: ?(?:\.|[\[(] ?dot ?[\])]) ?[\w-]{1,63}){1,4}",
        ),
    ),
    "[phone]": (
        (
            "+",
            r"(?<![\w.+#/-])(?=(?:\D{0,2}\d){7})\(?\+[1-9]"
            r"(?:\d{0,2}\)?(?:[ .-]\(?\d{1,5}\)?(?:\d{1,5})?){2,5}"
            r"|\d{9,14})(?!\w)",
        ),
        # (555) 123-4567
        ("(", r"(?<![\w)])\([2-9]\d{2}\) ?\d{3}[-. ]\d{4}(?![\w-])"),
    ),
    r"\1[phone]": (
        (
            "phone|tel|mobil|fax|call",
            r"(\b(?:phone|telefon|tel|mobile|fax|call)(?: number| me)?[.:]{0,2} ?(?:at |on )?)"
            r"\(?0\d{2,5}\)?(?:[ ./-]?\d{2,5}){2,4}(?!\w)",
        ),
    ),
    # A public address; one without a number above 31 is a version. Those of local networks tell nothing.
    "[ip]": (
        (
            ".",
            r"(?<![\w.+-])(?<!\w/)(?!(?:0|10|127|255|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.)"
            r"(?=[\d.]{0,12}(?:3[2-9]|[4-9]\d|\d{3}))(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}"
            r"(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w-]|\.\d)",
        ),
        (":", r"(?<![\w:.])(?=\w{0,4}:)(?:[0-9a-f]{1,4}:{1,2}){4,7}[0-9a-f]{1,4}(?![\w:])"),
    ),
    r"\1[user]": (
        ("/home/|/users/", rf"(/(?:home|Users)/)(?!{_ROBOTS})(?!\[)[^\s/\\:;,\"'<>()\[\]{{}}$*]{{1,64}}"),
        (
            "users",
            rf"(\b[a-z]:[\\/]{{1,2}}Users[\\/]{{1,2}})(?!{_ROBOTS})(?!\[)"
            r"(?:[^\\/\n:*?\"'<>|%$()]{1,64}(?=[\\/])|[^\s\\/:*?\"'<>|%$()]{1,64})",
        ),
        (
            "github.|ghe.",
            rf"({_GITHUB})(?!\[)(?!(?:{_PAGES})\b)[A-Za-z0-9-]{{1,39}}"
            r"(?=[\s)>\].,;:'\"?#]|/?$|/[\s)>\],;'\"?#])",
        ),
    ),
}
_RULES = [
    (by, hints.split("|"), re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for by, found in _PATTERNS.items()
    for hints, pattern in found
]
_CODE_RULES = _RULES[:-1]  # addresses of GitHub stay
_LOGIN = re.compile(
    r"(`[^`\n]{1,500}`)|(?<![\w.@-])@[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:_[A-Za-z0-9-]{0,38})?(?:\[bot\])?"
    r"(?=/@|(?![\w.@-]{0,100}[/(@])(?![\w-]))"
)


def scrub(text: str, *, code: bool = False) -> str:
    """Return `text` without secrets, addresses, phone numbers, logins and homes.

    In `code` an `@name` is an annotation rather than a login and stays.
    """
    text = _SHAPES.sub("[secret]", text)
    lowered = text.lower()
    for by, hints, pattern in _CODE_RULES if code else _RULES:
        if any(hint in lowered for hint in hints):
            text = pattern.sub(by, text)
    return text if code else _LOGIN.sub(lambda match: match[1] or "@user", text)
