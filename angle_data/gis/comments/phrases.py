"""The phrasings that tie an issue to another one, as data: an example and a pattern each.

Patterns run over squeezed sentences (see `sentences`) and name their targets in group `r`; `{NAME}` stands
for a building block of `vocabulary`. `context` and `grammar` decide what a phrase says where it is found.
Every repetition is bounded, so that matching is linear in the length of a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Literal

from angle_data.gis.comments.references import REF
from angle_data.gis.comments.vocabulary import BOUND, Direction, expand

Subject = Literal["this", "any"]


@dataclass(frozen=True, slots=True)
class Phrase:
    """One phrasing.

    `example` is a sentence that it is found in. `subject` says of what it must speak: `this` issue or nothing
    named, or `any`thing but another issue. `certain` False: tentative however it is said.
    """

    kind: str
    example: str
    pattern: re.Pattern[str]
    direction: Direction
    subject: Subject
    certain: bool


def _phrases(
    direction: Direction, subject: Subject, kind: str, *said: str, certain: bool = True
) -> list[Phrase]:
    """Return phrases; `said` are examples, each before its pattern."""
    return [
        Phrase(kind, example, expand(pattern), direction, subject, certain)
        for example, pattern in zip(said[::2], said[1::2], strict=True)
    ]


_this = partial(_phrases, "this_is_dup_of", "this")
_any = partial(_phrases, "this_is_dup_of", "any")
_other = partial(_phrases, "other_is_dup_of_this", "any")

# Finds: "closing"
_CLOSE = r"(?:clos|drop|abandon|withdraw|resolv|deprecat|supersed|reject)\w*+"
# Finds: "reported"
_REPORTED = (
    r"(?:report|fil|open|rais|request|log|submitt|document|describ|mention|propos|suggest|discuss|ask|post|"
    r"captur|list|register|creat|entered|brought up|written up|come up|noted|flagged)(?:ed|d)?(?: for)?"
)
# Finds: "merging"
_FOLD = (
    r"(?:fold|merg|consolidat|bundl|lump|roll|collaps|combin|unify|de-?dup(?:p|licat)?|aggregat|group|subsum|"
    r"absorb|centrali[sz]|mov|transferr?|migrat|redirect)(?:e|ed|ing)?"
)
# Finds: " the discussion"
_THING = (
    r"(?: (?:this|it|these|that|everything|things|both|all|the (?:discussion|conversation|efforts?|request|"
    r"{ISSUE})|{THIS}))?"
)
# Finds: "号问题的"
_CJK = r" ?(?:号|號|번)?(?:的?问题| ?issue| ?이슈)?(?: ?(?:的|是|属于|と|の|に|와|과|의|랑|이랑|하고))*"

PHRASES: tuple[Phrase, ...] = (
    *_any("command", "/duplicate of #5", r"(?:^|(?<=[\s(]))/(?:duplicate|dupe?)(?: of)?:? {R}"),
    *_other(
        "duplicate",
        "#5 is a duplicate of this one",
        r"{R}(?:(?!\bthis (?:is|was|one)|\b(?:mine|my)\b)[^.;!?\ue000]){0,60}?[ (]{D}\.?(?:{PREP}|"
        r" in favou?r of | )"
        r"(?:{HERE}|(?<= )(?<!of )(?<!to )it)(?![\w'])",
        "#5 はこの issue の重複です",
        r"{R} ?[はが与和跟同는은이가]? ?(?:この|本|此|该|这个|이) ?(?:issue|问题|件|"
        r"이슈)? ?[の의]? ?(?:重複|重复|중복)",
        "#5 is the same, closing it in favor of this one",
        r"{R}(?!.*\b(?:mine|i|my)\b)[^.;!?\ue000]{0,60}\bclos\w* (?:it|that(?: one)?|them|those) (?:in "
        r"favou?r of|as (?:an? )?{D} of) {HERE}(?![\w'])",
        "Closing #5 as a duplicate.",
        r"(?:clos|mark|flag|resolv|tag)\w* {R} as (?:an? |the )?(?:exact )?{D}(?= (?:of|to|with|for) "
        r"{THIS}(?![\w'])|[.,;:!)]|$| (?:and|so|since|because|here|too|as well)\b)",
        "This and its duplicate #5",
        r"{THIS} and (?:its|the) {D}(?: {ISSUE})?:? ?\(?{R}",
        "#5 is a copy of this",
        r"{R} (?:is|was) (?:the {D}|(?:an? |the )?(?:\w+ )?(?:copy|repeat|repost))(?= of {THIS}|[.,;:!)]|$)",
        "Duped by #5",
        r"(?<![\w-])dup(?:e|p|licat)?e?d (?:by|in|at):? {FILL}{R}",
        "There is a duplicate of this in #5",
        r"(?:^(?:and )?(?:(?:new|another|more|yet another|one more|known|other|closed|all|see|has) "
        r")?(?:(?=\w+s\b)|(?<= ))|\b(?:there(?:'s| is| are)|found|got|opened|created|filed|reported|posted|"
        r"submitted|are|were)(?: also| all| both)?(?: an?)?(?: another)? )(?:{D}(?: (?:of|to|for) {THIS})?|"
        r"(?:reports?|cop(?:y|ies)) of {THIS})(?:(?: (?:so far|found|reported|here|include|are|is|in|as|at|"
        r"issue)){1,2}[ :,(]{1,3}| ?[:(,–—-]{1,2} ?){R}",
    ),
    *_other(
        "duplicate",
        "See also #5 which is a dup.",
        r"{R}(?:,? (?:which|that))? (?:is|was|are)(?: also| both| just| really)* (?:an? )?{D}[.!]?$",
        certain=False,
    ),
    *_other(
        "favor",
        "Closed #5 in favor of this",
        rf"(?P<v>(?:{_CLOSE}|{_FOLD}) )?{{R}}(?(v)| {{BE}}(?: now| all| both| already)* (?:{_CLOSE}|{_FOLD}|"
        rf"replaced|obsoleted)),? (?:in favou?r of|(?:in)?to|by) {{THIS}}(?![\w']| (?:branch|release|version|"
        rf"milestone|file|series|repo))",
    ),
    *_other(
        "superseded",
        "This supersedes #5",
        r"^(?:{THIS} |this \w+ )?(?:now )?(?:supersedes|replaces|subsumes|obsoletes|supplants) {FILL}{R}",
    ),
    *_any(
        "duplicate",
        "Duplicate of #5",
        BOUND.pattern,
        "Please dupe this to #5",
        r"(?<![\w-])(?:de-?)?(?:duplicate|dup(?:e|ing|ed)?) {THIS} (?:to|of|against|into|with|as) {FILL}{R}",
        "#5 (dupe)",
        r"^[→=> -]*{R} ?[(,–—-]? ?{D}\)?[.!?]*$",
        "This was linked to #5 as a duplicate",
        r"\b(?:link|connect|mark|clos|merg|resolv)\w*(?: {THIS})? (?:to|with|into|against) {FILL}{R} as "
        r"(?:an? )?{D}",
        "A copy of #5",
        r"\b(?:(?:copy|repeat|re-?post|re-?report)(?: of| from)|repeats|repeated (?:with|of|in)) {FILL}{R}",
        "Not a duplicate of #6 but of #5",
        r"\bnot\b[^.;\ue000]{0,40}\ue000,? but (?:rather |instead |is )?(?:of |with |to |an? {D} of )?{R}",
    ),
    *_any(
        "duplicate",
        "This and #5 are the same",
        r"(?P<t>{THIS}(?:,| and) )?{R}(?(t)| and {THIS}) are(?: \w+)? (?:{D}|the same|"
        r"identical)(?! of \ue000)",
        "与 #5 重复",
        rf"(?!{REF} ?[和与跟及と과와] ?{REF})(?:与|和|跟|同|與|是)? ?{{R}}{_CJK} ?(?:重复|重複|중복)(?!点|"
        rf"请求|执|提交按)",
        "重复，见 #5",
        r"(?:重复|重複|중복)(?:[ ,:.(]|请|請|见|見|看|参考|参见|详见|issue|问题|的|了|提交|移步|关注|查看|已|"
        r"关闭|与|和|同|于|of|是|이슈|입니다){0,10} ?{R}",
    ),
    *_any(
        "favor",
        "Closing this in favor of #5",
        rf"(?:^|{_CLOSE}(?! (?:my|the|that|your) (?:prs?|pull requests?|patch|branch)\b)"
        rf"[^.;,?\ue000]{{0,60}}?,? )in favou?r of:? {{FILL}}{{R}}",
        "Fermé en faveur de #5",
        r"(?:en faveur d[eu]|(?:en|a) favor del?|em favor d[aoe]|(?:a|in) favore d[iae]l{0,2}|"
        r"zugunsten von|в "
        r"пользу)[ a-zàç]{0,14}{R}",
    ),
    *_this(
        "tracked",
        "This is tracked in #5",
        rf"\b(?:track(?:ed|ing)?(?: of)?(?: progress|{_THING})|handled){{ADV}}{{AS}} {{FILL}}{{R}}",
        "Tracking all reports in #5",
        r"\b(?:(?:track|consolidat|collect|gather)ing|(?:track|handle|collect|gather|discuss)(?= (?:all|"
        r"every|these|such|both)\b)) (?:[\w'-]+ ){1,7}?(?:over )?(?:in|at|as|under|into|with|by|"
        r"here:?) {FILL}{R}",
        "Please track #5",
        r"(?:\bplease track|^track(?:ed|ing)(?: issue)? ?(?:[:→=]|->|=>)) {FILL}{R}",
        "This is on our roadmap, see #5",
        r"\bon (?:our|the|my) (?:radar|list|roadmap|backlog|todo){TO}{R}",
    ),
    *_any(
        "tracked",
        "#5 already covers this",
        r"{R}(?:,? (?:which|that))?{ADV}(?: (?:is|has|been|was|should|will|be)){0,3} (?:track|cover|supersed|"
        r"subsum|replac|describ|report|request|captur|asks? for|want|explain)(?:e|s|es|ing|ed)? (?:exactly |"
        r"precisely |all of |the )?(?:{THIS}|same(?: {ISSUE})?)(?![\w'])(?! (?:part|aspect))",
    ),
    *_this(
        "same",
        "Same issue as #5",
        r"\b(?:the )?(?:exact(?:ly)? )?same(?: (?:exact|underlying|basic|general|root|core))?(?: (?:{ISSUE}|"
        r"cause|topic|ask|story|as))?{WAS}(?: (?:here|reported|described|discussed|mentioned|tracked|"
        r"raised))?(?: (?:as|with|of|to|like|in|by|at)| ?[:(–—-]|(?= \ue000)) ?{FILL}{R}(?!')",
        "Identical to #5",
        r"\b(?:identical|equivalent) (?:to|with) {FILL}{R}",
    ),
    *_any(
        "same",
        "#5 is exactly the same issue",
        r"{R}(?:,? which)? (?:is|has|looks|seems)(?: (?:exactly|basically|essentially|about|just|for|pretty "
        r"much|to be))* (?:the )?(?:exact )?same(?: {ISSUE})?(?: (?:as|like) {THIS})?(?=[.,;)!]|$| so | and "
        r")",
        "See #5, same thing",
        r"{R} ?[(,:–—-]{1,2} ?(?:(?!no|n')[\w']+ ){0,4}?(?:same|identical|gleiche\w?|"
        r"(?:d[aei][esr])?selbe|même|"
        r"mism[oa]|mesm[oa]|stess[oa]|zelfde|samma|samme|т?(?:от|а|о) же)(?: {ISSUE}| here| probl\w+| "
        r"проблем\w+)?(?=[.,;)!]|$| (?:so|and)\b)",
        "This is what #5 is for",
        r"\b(?:this|that|it)(?:'s| is|) (?:not |might be |may be |could be )?(?:\w+ly )?what {R} (?:is "
        r"(?:about(?! to)|for)|describes|reports|asks for|covers|wants|tracks)",
        "Même problème que #5",
        r"(?:même \w+ que|identique (?:à|au)|mismo(?: \w+)? (?:que|en)|igual (?:que|ao?|al|à)|mesm[oa](?: "
        r"\w+){0,2} (?:que|d[aoe]|em|n[ao])|stess[oa] \w+ (?:di|del|della)|(?:то|т?от|та|так(?:ая|ой|ое)?) "
        r"же(?: сам\w{2,3})?(?: \w+)?,? ?(?:что|как)?(?: и)?(?: [ву])?|zelfde (?:\w+ )?als|samm[ae] "
        r"(?:\w+ )?som|to samo co|ten sam (?:\w+ )?co|(?:gleiche[smrn]?|selbe[snm]?|identisch\w{0,2})(?: "
        r"\w+)? (?:wie|mit|zu)) {FILL}{R}",
        "和 #5 是同一个问题",
        rf"(?:(?:与|和|跟|同|與) ?)?{{R}}{_CJK} ?(?:相同|同样|一样|一樣|一致|同一个|同一個|ile aynı|同じ|"
        rf"同件|同一|同様|동일|같은)",
        "同 #5",
        r"^同(?:上)? ?{R}",
    ),
    *_any(
        "identity",
        "Basically #5",
        r"^(?:exactly|basically|essentially|aka|effectively|literally|simply|(?:nvm|never ?mind)[,.:]*(?: "
        r"i)?(?: just)? (?:found|saw|see))[,:]? {R}(?: again)?[.!]?$",
        "What you describe is #5",
        r"\b(?:(?:what you(?:'re| are)? \w+|(?:the|your) {ISSUE}(?: you [\w ]{1,20})?|turn(?:s|ed) out to be|"
        r"good old)(?: (?:here|is))*|you(?:'re| are|'ve| have)?{ADV} (?:hit(?:ting)?|seeing|r[au]n(?:ning)? "
        r"into)) {R}(?=[.,;:!)]|$| (?:again|so|and)\b)",
        "This boils down to #5",
        r"\b(?:(?:boils|comes|narrows) down to|(?:(?:this|that|it) (?:is|looks like|seems) (?:just )?an?|"
        r"another) (?:special )?(?:case|instance|variant|occurrence|symptom|manifestation) of) {FILL}{R}",
        "This is #5 again",
        r"\b(?:this|that|it|yours)(?: (?:issue|one|bug))?(?:'s| is| was| would be|'d be| will be|isn't)(?: "
        r"not)?{ADV} ?(?:issue |bug |ticket )?{R}(?=[.,;:!?)]|$| (?:again|all over|in disguise|closing|so|"
        r"and|then|which|-|–|—|\(|imo|isn't|right|too|as well|once more|after all|i think|i guess)\b| "
        r"?[–—-])",
    ),
    *_this(
        "superseded",
        "Superseded by #5",
        r"\b(?:supers?c?eded|superceded|subsumed|obsoleted|supplanted|replaced|succeeded|overtaken|made "
        r"obsolete|(?:made )?redundant) (?:by|with|to) {FILL}{R}",
    ),
    *_this(
        "covered",
        "This is covered by #5",
        r"\b(?:covered|encompassed|captured|absorbed|(?:already|became|now|is) (?:an? )?part|falls?) (?:by|"
        r"in|under|with|of) {FILL}{R}",
    ),
    *_this(
        "merged",
        "Folding this into #5",
        rf"\b{_FOLD}{_THING}(?: (?:back|down|up|together|over))?(?: into| in to| to| under| in with| with| "
        rf"w/| up in| against)(?! (?:the )?(?:master|main|trunk|dev|develop|head|release)\b(?! issue)) "
        rf"{{FILL}}{{R}}",
    ),
    *_this(
        "continued",
        "Please follow #5 for updates",
        r"\b(?:follow(?:ing)?|subscribe to|watch|up-?vote|vote (?:for|on)|please (?:head|go)(?: over)? to|"
        r"thumbs[- ]up|👍|:\+1:|(?<!the )(?<!my )(?<!this )(?<!your )(?<!a )(?<!last )comment (?:on|in))(?: "
        r"along| up)?(?: (?:in|on|with|at))* {FILL}{R}(?: instead| for (?:\w+ )?(?:updates|progress|further)|"
        r" to (?:get|be|stay|receive|keep)| there\b| so\b| please\b|[.,;:!)]|$| and )",
        "Let's continue the discussion in #5",
        r"\b(?:discuss|(?:continu|keep|centrali[sz]|track|tak|mov|direct|handl|consolidat)(?:e|ed|ing)?)(?: "
        r"(?:the|this|that|it|all|our|everything|any|further|future|discussions?|conversation|work|debate|"
        r"thread|comments|going|there|over|together|here|along|only|just|in one place)){0,6}(?:,| ?:| (?:in|"
        r"on|at|over|to|under|with|via)){1,2} {FILL}{R}",
        "Further discussion should happen in #5",
        r"\b(?:discussion|conversation|work)s?(?: on {THIS})?(?: (?:should|can|will|must|to|is|please|"
        r",))*(?: (?:happens?|goes on|continues?|done|go|be|take place|stay|kept|held))+ (?:in|to|at|on|over "
        r"(?:in|at|to|on)) {FILL}{R}",
        "See #5 instead",
        r"\b(?:use|to|with|see|in|on|at|follow) {FILL}{R} (?:instead|for {THIS}(?![\w']))",
    ),
    *_this(
        "reported",
        "Already reported in #5",
        rf"\b(?:already|previously|before|earlier)(?: (?:being|been))? (?:{_REPORTED}|tracked|covered|known|"
        rf"handled|exists?){{TO}}{{R}}",
        "It was filed as #5",
        rf"\b(?:has|was|been|is|got){{ADV}}(?: originally)? {_REPORTED}(?:{{AS}} |[:,(–—-][ "
        rf":(]{{0,2}}){{FILL}}{{R}}",
        "It has been mentioned before: #5",
        rf"(?:^|\b(?:been|was|has|have|we|else|some(?:one|body)|@[\w-]+) ){_REPORTED}(?: this| it)? "
        rf"(?:before|already|previously|earlier|once){{TO}}{{R}}",
    ),
    *_any(
        "reported",
        "There is already an issue for this: #5",
        r"(?=[^\ue000]{0,90}\b(?:already|existing|open|older|earlier|another|this|that|it|"
        r"same)\b)(?![^\ue000]{0,60}\b(?:pr|pull request|patch)\b)\b(?:there(?:'s| is| are| exists| was| "
        r"already is)|we(?:'ve| have| already have| do have)(?: got)?|has|already (?:opened|filed|reported|"
        r"created|raised|have|got|is))(?: (?:an?|one|another|the|this|some|existing|already|also|open|older|"
        r"earlier|long-standing|similar|dedicated|separate)){1,4} {ISSUE}{TO}{R}",
        "There is #5 for this",
        r"\b(?:there(?:'s| is)|(?:we )?(?:now |already |also )have|we(?: have|'ve got|'ve)) {R}(?: open)?(?: "
        r"for (?:{THIS}|the same)| already)",
        "Known issue, see #5",
        r"(?:\b(?:known|existing|open|original|canonical|main|tracking) (?:(?!prs?\b|pull){ISSUE}|"
        r"limitation)(?: is)?|^(?:already )?known){TO}{R}",
        "Here's the original: #5",
        r"\bthe original(?: is| ?[:(–—-]{1,2}) ?{R}",
        "已有相同 issue: #5",
        r"已(?:经|經)?有(?:相同|类似|一样|同样)?(?:的)? ?(?:issue|问题|反馈|讨论)[ ,:(]{0,3}{R}",
        "Acompanhem pela #5",
        r"\b(?:acompanh\w+|continu(?:ar|em|emos)|seguir|sigam?|seguimos|suivre|suivez|suit|suivons|"
        r"verfolg\w+|trabaj\w+|trabalh\w+)(?: \w+){0,3} (?:em|n[ao]|pel[ao]|en|dans|sur) {R}",
        "A #5 trata disso",
        r"{R} (?:já )?(?:trata|aborda|cobre|cubre|describe|traite|couvre|behandelt|beschreibt) (?:d?isso|"
        r"d?isto|(?:de )?esto|(?:de )?(?:cela|ça|ce)|das|dies\w{0,2})\b",
        "Das wird in #5 verfolgt",
        r"\b(?:wird|werden)(?: \w+)? (?:in|unter|mit) {R} (?:verfolgt|behandelt|diskutiert|getrackt|"
        r"bearbeitet)",
        "Bereits gemeldet in #5",
        r"(?:bereits|schon)(?! behoben| gefixt)[^.;\ue000]{0,30}(?:: ?| (?:in|unter|als|bei|mit|hier|"
        r"gemeldet|siehe)[ :]{1,2}){R}(?! (?:behoben|gefixt|gelöst|repariert|umgesetzt))",
        "Déjà signalé dans #5",
        r"(?:déjà (?:été )?(?:signal|suivi|rapport|remont|ouvert|trait|demand|évoqu|discut|connu)\w{0,4}|ya "
        r"(?:fue |está |se |ha sido |hay |existe )?(?:(?:un|una|siendo|lo) )?(?:report|registr|solicit|"
        r"abiert|trat|segu|inform|issue|sigue|está siguiendo|coment)\w{0,6}|já (?:foi |está |sendo |existe "
        r")*(?:report|relat|registr|solicit|acompanh|rastre|discut|abert|trat|pedid)\w{0,4}|j[áa] temos|ya "
        r"tenemos|on a déjà|già (?:stat[oa] )?(?:segnalat|apert|tracciat|discuss|riportat|trattat)\w{0,2}|"
        r"уже (?:есть|обсуждается|отслеживается|сообщал\w{0,3}|завед[её]н\w{0,2}|создан\w{0,2}|описан\w{0,2}|"
        r"был\w? )|al gemeld|już zgłoszon\w{0,2}|zgłoszon\w{0,2} już|já existe|existe "
        r"déjà)[^.;\ue000]{0,20}{R}",
    ),
    *_any(
        "tracked",
        "已在 #5 中讨论",
        r"(?:在|由|于) ?{R} ?(?:中|里|上|里面)?(?:被)?(?:跟踪|跟进|追踪|追蹤|讨论|討論|反馈|處理|提出|报告|"
        r"記錄|记录)",
        "合并到 #5",
        r"(?:合[并併]到|移步) ?{R}",
        "#5 で対応",
        r"{R} ?(?:で|에서|로) ?(?:追跡|対応|議論|トラッキング|報告|管理|추적|논의|진행|다루)",
    ),
    *_any(
        "similar",
        "This looks similar to #5",
        r"\b(?:sounds?|looks?|seems?|feels?|appears?|smells?|^\w+ly|might|may|could|possibly|probably|"
        r"perhaps|maybe)(?: (?:a lot|very|much|quite|somewhat|to be|be|\w+ly)){0,3} (?:like|(?:close|similar|"
        r"related|linked|connected) (?:to|with)) {FILL}{R}",
        "Same error as #5",
        r"\bsame (?:error|exception|behaviou?r|symptoms?|message|stack ?trace|failure|root cause|cause|"
        r"{ISSUE})(?: (?:here|reported|described|message))* (?:as|like|with) {FILL}{R}",
        "#5 looks similar",
        r"{R} (?:looks?|seems?|might|may|could|appears?|sounds?)(?: (?:like|to|be|also|just|very|the|a|"
        r"possibly))* (?:same|similar|related|{D})",
        "Isn't this #5?",
        r"^(?:hmm+,? |so |but )?(?:(?:isn't|is|wasn't|was|could|might) (?:this|it|that)(?: not)?|(?:this |it "
        r"|that )?(?:could|might|may))(?: (?:just|the same as|basically|be|actually|maybe|very|well))* {R}",
        certain=False,
    ),
)
