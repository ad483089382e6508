"""The phrasings that tie an issue to another one, as data: an example and a pattern each.

Patterns run over squeezed sentences (see `sentences`) and name their targets in group `r`; `{NAME}` stands
for a building block of `vocabulary`. Patterns only say where to look: the files after this one and `grammar`
decide whether the phrase is negated, asked or hedged, and whether it speaks of this issue at all. Every
repetition is bounded, so that matching is linear in the length of a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from angle_data.gis.comments.vocabulary import BOUND, Direction, expand

Subject = Literal["open", "this", "any"]


@dataclass(frozen=True, slots=True)
class Phrase:
    """One phrasing.

    `example` is a sentence that it is found in. `subject` says of what it must speak: `this` issue or nothing
    named, `open`: anything but another reference, or `any`. `certain` False: tentative however it is said.
    """

    kind: str
    example: str
    pattern: re.Pattern[str]
    direction: Direction
    subject: Subject
    certain: bool


def _this(kind: str, *said: str, subject: Subject = "this", certain: bool = True) -> list[Phrase]:
    """Phrases by which this issue is the duplicate; `said` are examples, each before its pattern."""
    return [
        Phrase(kind, example, expand(pattern), "this_is_dup_of", subject, certain)
        for example, pattern in zip(said[::2], said[1::2], strict=True)
    ]


def _other(kind: str, *said: str, certain: bool = True) -> list[Phrase]:
    """Phrases by which the other issue is the duplicate."""
    found = _this(kind, *said, subject="any", certain=certain)
    return [replace(phrase, direction="other_is_dup_of_this") for phrase in found]


# Finds: "closing"
_CLOSE = (
    r"(?:clos(?:e|ed|es|ing)|drop(?:ped|ping)?|abandon(?:ed|ing)?|withdraw(?:n|ing)?|resolv(?:ed|ing)|"
    r"deprecat(?:ed|ing)|superseded|reject(?:ed|ing)?)"
)
# Finds: "reported"
_REPORTED = (
    r"(?:report|fil|open|rais|request|log|submitt|document|describ|mention|propos|suggest|discuss|ask|post|"
    r"captur|list|register|creat|entered|brought up|written up|come up|noted|flagged)(?:ed|d)?"
)
# Finds: "merging"
_FOLD = (
    r"(?:fold(?:ing|ed)?|merg(?:e|ing|ed)|consolidat(?:e|ing|ed)|roll(?:ing|ed)?|collaps(?:e|ing|ed)|"
    r"combin(?:e|ing|ed)|unify(?:ing)?|de-?dup(?:e|ed|ing|p?ing|licate|licating|licated|p?ed)?|aggregat(?:e|"
    r"ing|ed)|group(?:ing|ed)?|subsum(?:e|ing)|absorb(?:ed|ing)?|centraliz(?:e|ing|ed)|centralis(?:e|ing|"
    r"ed))"
)
# Finds: " the discussion"
_THING = (
    r"(?: (?:this|it|these|that|everything|things|both|all|the (?:discussion|conversation|efforts?|issues?|"
    r"threads?|reports?)|{THIS}))?"
)

PHRASES: tuple[Phrase, ...] = (
    *_this(
        "command", "/duplicate of #5", r"(?:^|(?<=[\s(]))/(?:duplicate|dupe?)(?: of)?:? {R}", subject="any"
    ),
    *_other(
        "duplicate",
        "#5 is a duplicate of this one",
        r"{R}(?:(?!\bnot?\b|n't|\bthis (?:is|was|one))[^.;!?\ue000]){0,60}?[ (]{D}\.?(?: (?:of|to|with|for|"
        r"in favou?r of))? (?:{THIS})(?![\w'])",
        "Closing #5 as a duplicate.",
        r"(?:clos(?:ed|ing|es|e)|mark(?:ed|ing)?|flagg?(?:ed|ing)?|resolv(?:ed|ing)|tagg(?:ed|ing)) {R} as "
        r"(?:an? |the )?(?:exact )?{D}(?= (?:of|to|with|for) (?:{THIS})(?![\w'])|[.,;:!)]|$| (?:and|so|"
        r"since|because|here|too|as well)\b)",
        "This and its duplicate #5",
        r"{THIS} and (?:its|the) {D}(?: {ISSUE})?:? ?\(?{R}",
        "#5 is a copy of this",
        r"{R} (?:is|was) (?:an? |the )?(?:exact |verbatim )?(?:copy|repeat|repost)(?= of {THIS}|[.,;:!)]|$)",
        "Duped by #5",
        r"(?<![\w-])dup(?:e|p|licat)?e?d (?:by|in|at):? {FILL}{R}",
        "There is a duplicate of this in #5",
        r"\b(?:there(?:'s| is| are)|found|have|opened|created|filed|see) (?:also )?(?:an? |another )?{D} "
        r"(?:of|to) {THIS}(?:[ ,:(–—-]|in|at|here|is|as){1,6}{R}",
        "Both are duplicates of this: #5",
        r"\b(?:are|were) (?:all |also |both )?{D} (?:of|to) {THIS} ?[:(–—-]{1,2} ?{R}",
        "Another duplicate: #5",
        r"^(?:and )?(?:new|another|more|yet another|one more|found (?:a|another)) {D} ?: ?{R}",
        "Known duplicates: #5",
        r"^(?:(?:has|known|other|closed|all|see) )?(?:duplicates|dupes|dups)(?: (?:so far|found|reported|"
        r"here|include|are)){0,2} ?: ?{R}",
        "I opened a duplicate (#5)",
        r"(?:opened|filed|created|reported|posted|submitted) (?:a |another )?{D}(?: (?:of|to|for) "
        r"{THIS})?(?: (?:in|as|at|issue))*[ :(,]{1,3}{R}",
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
        rf"{_CLOSE} {{R}},? in favou?r of {{THIS}}(?![\w'])",
        "#5 was closed in favor of this issue",
        r"{R} {BE}(?: now)? (?:(?:closed|dropped|superseded|abandoned) in favou?r of|(?:merged|folded) "
        r"(?:in)?to|(?:superseded|replaced|subsumed|obsoleted) by) {THIS}(?![\w'])",
    ),
    *_other(
        "merged",
        "Merging #5 into this",
        rf"{_FOLD} {{R}} (?:in)?to {{THIS}}(?![\w']| (?:branch|release|version|milestone|file|series|repo))",
    ),
    *_other(
        "superseded",
        "This supersedes #5",
        r"^(?:{THIS} |this \w+ )?(?:now )?(?:supersedes|replaces|subsumes|obsoletes|supplants) {FILL}{R}",
    ),
    *_this(
        "duplicate",
        "Duplicate of #5",
        BOUND.pattern,
        "#5, of which this is a duplicate",
        r"{R},? (?:of )?which {THIS} {BE} (?:an? )?{D}",
        "Please dupe this to #5",
        r"(?<![\w-])(?:de-?)?(?:duplicate|dup(?:e|ing|ed)?) (?:this|it)(?: one| issue)? (?:to|of|against|"
        r"into|with|as) {FILL}{R}",
        "A copy of #5",
        r"\b(?:copy|repeat|re-?post|re-?report)(?: of| from) {FILL}{R}",
        "Not a duplicate of #6 but of #5",
        r"\bnot\b[^.;\ue000]{0,40}\ue000,? but (?:rather |instead |is )?(?:of |with |to |an? {D} of )?{R}",
        subject="open",
    ),
    *_this(
        "duplicate",
        "This and #5 are the same",
        r"{THIS} and {R} are(?: basically| essentially| really| both)? (?:{D}|the same|identical)(?! of "
        r"\ue000)",
        "#5 and this are identical",
        r"{R} and {THIS} are(?: basically| essentially| really| both)? (?:{D}|the same|identical)(?! of "
        r"\ue000)",
        "与 #5 重复",
        r"(?:与|和|跟|同|與|是)? ?{R} ?(?:号|號)?(?:问题|的问题| ?issue)?(?: ?的| ?是| ?属于)* ?(?:重复|"
        r"重複)(?!点|请求|执|提交按)",
        "重复，见 #5",
        r"(?:重复|重複)(?:[ ,:.(]|请|請|见|見|看|参考|参见|详见|issue|问题|的|了|提交|移步|关注|查看|已|"
        r"关闭|与|和|同|于|of|是){0,10} ?{R}",
        "#5 と重複",
        r"{R} ?(?:번)?(?: ?(?:이슈|issue))?(?:と|の|に|와|과|의|랑|이랑|하고)? ?(?:重複|중복)",
        "중복입니다: #5",
        r"중복(?: 이슈)?(?:입니다)?[ :,.(]{0,3}{R}",
        subject="any",
    ),
    *_this(
        "favor",
        "Closing this in favor of #5",
        rf"{_CLOSE}[^.;,?\ue000]{{0,60}}?,? in favou?r of:? {{FILL}}{{R}}",
        "In favor of #5",
        r"^in favou?r of {FILL}{R}",
        "Fermé en faveur de #5",
        r"(?:en faveur d[eu]|a favor del?|em favor d[aoe]|a favore d[iae]l{0,2}|zugunsten von|в пользу)[ "
        r"a-zàç]{0,14}{R}",
        subject="open",
    ),
    *_this(
        "tracked",
        "This is tracked in #5",
        r"\btrack(?:ed|ing)?(?: of)?(?: (?:this|it|that|these|everything|progress|{THIS}))?(?: (?:already|"
        r"now|instead|further|together|centrally))*{AS} {FILL}{R}",
        "Tracking all reports in #5",
        r"\btracking (?:[\w'-]+ ){1,5}?(?:over )?(?:in|at|under|into|with|by) {FILL}{R}",
        "Handled in #5",
        r"\bhandled{AS} {FILL}{R}",
        "Please track #5",
        r"\bplease track {FILL}{R}",
        "Tracking issue: #5",
        r"^track(?:ed|ing)(?: issue)? ?(?:[:→=]|->|=>) ?{R}",
        "This is on our roadmap, see #5",
        r"\bon (?:our|the|my) (?:radar|list|roadmap|backlog|todo)(?:{AS})?[ :,(–—-]{1,3}(?:as |see "
        r")?{FILL}{R}",
    ),
    *_this(
        "tracked",
        "#5 already covers this",
        r"{R}(?:,? (?:which|that))?(?: (?:already|also|now|still|currently|is|has|been|was|should|will|"
        r"be))* (?:track(?:s|ing)|cover(?:s|ed|ing)?|supersed(?:e|es|ing|ed)|subsum(?:es|ing)|replac(?:e|es|"
        r"ing|ed)|describ(?:es|ing)|reports?|requests?|captures?|asks? for|wants|explains) (?:exactly |"
        r"precisely |all of |the )?(?:{THIS}|same(?: thing| issue| problem| request)?)(?![\w'])(?! (?:part|"
        r"aspect))",
        "#5 is the canonical issue for this",
        r"{R} (?:is|was|remains)(?: already| now| our)* (?:the |an? |our )?(?:canonical|main|original|"
        r"primary|older|existing|tracking|dedicated)(?: (?:open|existing|main))*(?: {ISSUE})?(?: (?:for|"
        r"about|on|of|tracking) {THIS}|[.,;)]|$)",
        "#5 is already open for this",
        r"{R} (?:is|exists|has been|was)(?: already)?(?: open| opened| filed| there| around)+ (?:for|to "
        r"track|about) {THIS}(?![\w'])",
        "Keeping #5 open and closing this",
        r"(?:keep|keeping|leave|leaving|use|using|treat|consider) {R}(?: open)?(?: as (?:the )?(?:main|"
        r"canonical|original|primary|tracking|single)\b| (?:open |and close |instead and )?(?:and|to) "
        r"(?:close|closing|track) {THIS})",
        subject="any",
    ),
    *_this(
        "same",
        "Same issue as #5",
        r"\b(?:the )?(?:exact(?:ly)? )?(?:the )?same(?: (?:exact|underlying|basic|general|root|core))?(?: "
        r"(?:issue|bug|problem|cause|thing|(?:feature )?request|report|question|topic|ask|idea|ticket|story|"
        r"feature|thread|proposal|as))?(?: (?:here|reported|described|discussed|mentioned|tracked|raised))? "
        r"(?:as|with|to|like)(?: (?:in|with|reported in|described in|the one in|mentioned in|what|from|over "
        r"in|the one reported in))? ?{FILL}{R}(?!')",
        "Same bug that was reported in #5",
        r"\bsame(?: exact)? (?:issue|bug|problem|thing|request|report|topic)(?: (?:that|which))?(?: (?:is|"
        r"was|has been|being|we))?(?: (?:already|being))? (?:reported|described|discussed|tracked|mentioned|"
        r"raised|have) (?:in|at|by|as) {FILL}{R}",
        "Identical to #5",
        r"\b(?:identical|equivalent) (?:to|with) {FILL}{R}",
        "Same problem: #5",
        r"^(?:identical|same) (?:issue|bug|problem|report|request|ticket)(?: as)? ?[:(–—-] ?{R}",
        "Gleicher Fehler wie #5",
        r"(?:gleiche[smrn]?|selbe[snm]?|identisch\w{0,2})(?: (?:problem|fehler|thema|issue|bug|anliegen|"
        r"sache))? (?:wie|mit|zu)(?: in| bei| der| dem)* {FILL}{R}",
    ),
    *_this(
        "same",
        "#5 is exactly the same issue",
        r"{R} (?:is|has|looks|seems)(?: (?:exactly|basically|essentially|about|just|for|pretty much|to "
        r"be))* (?:the )?(?:exact )?same(?: (?:issue|bug|problem|thing|request|topic|report))?(?: (?:as|"
        r"like) {THIS})?(?=[.,;)!]|$| so | and )",
        "See #5, same thing",
        r"{R} ?[(,:–—-]{1,2} ?(?:(?:it's|it is|is|which is|with) )?(?:the )?(?:exact )?same(?: (?:issue|"
        r"thing|problem|bug|request|here))?(?=[.,;)!]|$| (?:so|and)\b)",
        "#5 is exactly what I see",
        r"{R}(?:,? which)? (?:is|describes|reports|has|covers|matches|asks for) (?:exactly|precisely) "
        r"(?:that|what|my|this|the same|the one)",
        "Même problème que #5",
        r"(?:même (?:problème|bug|souci|chose|demande|ticket|sujet) que|identique (?:à|au)|mismo "
        r"(?:problema|error|bug|asunto|issue)? ?que|igual (?:que|ao?|al|à)|mesm[oa] (?:problema|erro|bug|"
        r"coisa|questão)? ?(?:que|d[aoe])|stess[oa] (?:problema|errore|bug|cosa|segnalazione) (?:di|del|"
        r"della)|то же(?: самое)?,? ?(?:что|самое)?(?: и)?(?: в)?|так(?:ая|ой) же (?:проблема|баг|ошибка),? "
        r"(?:как|что)(?: и)?(?: в)?|zelfde (?:\w+ )?als|samm[ae] (?:\w+ )?som|to samo co|ten sam (?:\w+ "
        r")?co) ?(?:le |la |el |en |dans |no |na |o |a |в )?{FILL}{R}",
        "和 #5 是同一个问题",
        r"(?:与|和|跟|同|與)? ?{R} ?(?:号|號)?(?:问题|的问题| ?issue)?(?: ?的| ?是| ?属于)* ?(?:相同|一样|"
        r"一樣|一致|同一个|同一個)",
        "#5 ile aynı",
        r"{R} ile aynı",
        "#5 と同じ",
        r"{R} ?(?:번)?(?: ?(?:이슈|issue))?(?:と|の|에|와|과|랑|이랑|하고) ?(?:同じ|同一|同様|동일|같은)",
        "同 #5",
        r"^同(?:上)? ?{R}",
        subject="any",
    ),
    *_this(
        "identity",
        "Basically #5",
        r"^(?:exactly|basically|essentially|aka|effectively)[,:]? {R}[.!]?$",
        "What you describe is #5",
        r"\b(?:what you(?:'re| are)? \w+|(?:the|your) {ISSUE}(?: you [\w ]{1,20})?|turn(?:s|ed) out to be|"
        r"good old)(?: (?:here|is))* {R}(?=[.,;:!)]|$| (?:again|so|and)\b)",
        "You are hitting #5",
        r"\byou(?:'re| are|'ve| have)?(?: probably| likely)? (?:hit(?:ting)?|seeing|r[au]n(?:ning)? into) "
        r"{R}(?=[.,;!)]|$)",
        "This boils down to #5",
        r"\b(?:boils|comes|narrows) down to {FILL}{R}",
        "This is another instance of #5",
        r"(?:\b(?:this|that|it) (?:is|looks like|seems) (?:just )?an?|\banother) (?:special )?(?:case|"
        r"instance|variant|occurrence|symptom|manifestation) of {FILL}{R}",
        "This is #5 again",
        r"\b(?:this|that|it|yours)(?: (?:issue|one|bug))?(?:'s| is| was| would be|'d be| will be|isn't)(?: "
        r"not)?{ADV} ?(?:issue |bug |ticket )?{R}(?=[.,;:!?)]|$| (?:again|all over|in disguise|closing|so|"
        r"and|then|which|-|–|—|\(|imo|isn't|right|too|as well|once more|after all|i think|i guess)\b| "
        r"?[–—-])",
        subject="any",
    ),
    *_this(
        "superseded",
        "Superseded by #5",
        r"\b(?:superseded|superceded|subsumed|obsoleted|supplanted|replaced|succeeded|overtaken|made "
        r"obsolete|(?:made )?redundant) (?:by|with|to) {FILL}{R}",
    ),
    *_this(
        "covered",
        "This is covered by #5",
        r"\b(?:covered|encompassed|captured|absorbed|already (?:an? )?part|falls?) (?:by|in|under|with|of) "
        r"{FILL}{R}",
    ),
    *_this(
        "merged",
        "Folding this into #5",
        rf"\b{_FOLD}{_THING}(?: (?:back|down|up|together|over))?(?: into| in to| to| under| in with| "
        rf"against)(?! (?:the )?(?:master|main|trunk|dev|develop|head|release)\b(?! issue)) {{FILL}}{{R}}",
        "Moving the discussion to #5",
        r"\b(?:mov(?:e|ed|ing)|transferr?(?:ed|ing)?|migrat(?:ed|ing)|redirect(?:ed|ing)?)(?: (?:this|it|"
        r"the (?:discussion|conversation)|{THIS}))?(?: over)? to {FILL}{R}",
        "Collecting all reports in #5",
        r"\b(?:consolidat|collect|gather)ing (?:[\w'-]+ ){1,5}?(?:in|at|under|into|with) {FILL}{R}",
        "Let's merge this with #5",
        rf"\b(?:fold|merg|consolidat|combin|collaps)(?:(?:e|ing){_THING}(?: together)? (?:with|w/|in)|ed "
        rf"(?:with|w/)) {{FILL}}{{R}}",
    ),
    *_this(
        "reported",
        "已有相同 issue: #5",
        r"已(?:经|經)?有(?:相同|类似|一样|同样)?(?:的)? ?(?:issue|问题|反馈|讨论)[ ,:(]{0,3}{R}",
        subject="any",
    ),
    *_this(
        "merged",
        "合并到 #5",
        r"合[并併]到 ?{R}",
        "#5 に統合",
        r"{R} ?に ?(?:統合|集約|まとめ)",
        subject="any",
    ),
    *_this(
        "continued",
        "Please follow #5 for updates",
        r"\b(?:please|pls|kindly|to|you can|and|let's)?,? ?(?:follow|subscribe to|watch|upvote|up-vote|"
        r"following|vote (?:for|on)|thumbs[- ]up|👍|:\+1:|(?<!the )(?<!my )(?<!this )(?<!your )(?<!a "
        r")(?<!last )comment (?:on|in))(?: along| up)?(?: (?:in|on|with|at))* {FILL}{R}(?: instead| for "
        r"(?:\w+ )?(?:updates|progress|further)| to (?:get|be|stay|receive|keep)| there\b| so\b|[.,;:!)]|$| "
        r"and )",
        "Let's continue the discussion in #5",
        r"\b(?:continu(?:e|ing|ed)|discuss|keep|centrali[sz]e|track|take|mov(?:e|ed|ing)|direct|handle|"
        r"consolidate)(?: (?:the|this|that|it|all|our|everything|any|further|future))*(?: (?:discussion|"
        r"conversation|work|debate|thread|comments|discussions))?(?: (?:going|there|over|together|here|"
        r"along|only|just|further|in one place))*(?:,| ?:| (?:in|on|at|over|to|under|with|via)){1,2}(?: "
        r"(?:at|in|on|to))? {FILL}{R}",
        "Further discussion should happen in #5",
        r"\b(?:discussion|conversation|work)s?(?: on {THIS})?(?: (?:should|can|will|must|to|is|please|"
        r",))*(?: (?:happens?|goes on|continues|done|go|be|take place|continue|stay|kept|held))+ (?:in|to|"
        r"at|on|over (?:in|at|to|on)) {FILL}{R}",
        "See #5 instead",
        r"\b(?:use|to|with|see|in|on|at|follow) {FILL}{R} instead",
        "Please head to #5",
        r"\bplease (?:head|go)(?: over)? to {FILL}{R}",
        "Use #5 for this",
        r"\buse {FILL}{R} for {THIS}(?![\w'])",
    ),
    *_this(
        "reported",
        "Already reported in #5",
        rf"\b(?:already|previously|before|earlier)(?: (?:being|been))? (?:{_REPORTED}|tracked|covered|known|"
        rf"handled|exists?)(?: (?:before|here|there|earlier|upstream|already|by @?[\w-]+))?(?:{{AS}})?[ "
        rf":,(–—-]{{1,3}}(?:see |in |as )?{{FILL}}{{R}}",
        "It was filed as #5",
        rf"\b(?:has|was|been|is|got)(?: (?:already|previously|also|actually|first|originally))* "
        rf"{_REPORTED}(?: (?:before|already|previously|earlier|once|a while ago))?(?:{{AS}}|[:,(–—-])[ "
        rf":(]{{0,2}}(?:see )?{{FILL}}{{R}}",
        "It has been mentioned before: #5",
        rf"(?:^|\b(?:been|was|has|we) ){_REPORTED}(?: (?:this|it))? (?:before|already|previously|"
        rf"earlier)(?:{{AS}})?[ :,(–—-]{{1,3}}(?:see )?{{FILL}}{{R}}",
    ),
    *_this(
        "reported",
        "There is already an issue for this: #5",
        r"(?=[^\ue000]{0,90}\b(?:already|existing|open|older|earlier|another|this|that|it|"
        r"same)\b)(?![^\ue000]{0,60}\b(?:pr|pull request|patch)\b)\b(?:there(?:'s| is| are| exists| was| "
        r"already is)|we(?:'ve| have| already have| do have)(?: got)?|has)(?: already| also)?(?: (?:an?|one|"
        r"another|the|some|existing|already|open|older|earlier|long-standing|similar|dedicated|"
        r"separate)){1,4} {ISSUE}(?: (?:open|opened|filed|reported|already|tracking|covering|for|about|on|"
        r"with|regarding|requesting|describing))*(?: (?:exactly |precisely )?(?:{THIS}|the same(?: thing| "
        r"issue| problem)?|that))?(?: (?:open|already|before|over))*[ :,(–—-]{1,3}(?:see |at |in |as |here |"
        r"is |it's )*:? ?{R}",
        "I found that #5 exists",
        r"(?<!why )(?<!how ){R} (?:already )?exists(?=[.,;!)]|$)",
        "Somebody already reported this: #5",
        r"\balready (?:reported|filed|opened|requested|asked for) (?:it|this)[ :,(–—-]{1,3}(?:(?:in|as|at|"
        r"see) )?{R}",
        "You already opened an issue for this: #5",
        r"\balready (?:opened|filed|reported|created|raised|have|has|got|is) (?:an?|the|this)(?: "
        r"(?:existing|open|similar))? {ISSUE}(?: (?:open|for|about|on|tracking|regarding))*(?: {THIS}| the "
        r"same)?[ :,(–—-]{1,3}(?:see |at |as |in |here |it's )*:? ?{R}",
        "There is #5 for this",
        r"\b(?:there(?:'s| is)|we(?: now| already| also)? have|we've got) {R}(?: open)?(?: for {THIS}| "
        r"already)",
        "Known issue, see #5",
        r"\bknown (?:issue|bug|problem|limitation)[ :,(–—-]{1,3}(?:see |tracked (?:in|by|at) |and tracked "
        r"in )?{R}",
        "The original report is #5",
        r"\b(?:existing|open|original|canonical|main|tracking) (?:issue|report|ticket|discussion|thread|"
        r"request|bug)(?: (?:is|for {THIS}|here|at|in|can be found|lives|about {THIS}))*[ :,(–—-]{1,3}{R}",
        "Acompanhem pela #5",
        r"\b(?:acompanh\w+|continu(?:ar|em|emos)|seguir|sigam?|suivre|suivez) (?:em|n[ao]|pel[ao]|en|dans|"
        r"sur) {R}",
        "Bereits gemeldet in #5",
        r"(?:bereits|schon)(?! behoben| gefixt)[^.;\ue000]{0,30}(?:: ?| (?:in|unter|als|bei|mit|hier|"
        r"gemeldet|siehe)[ :]{1,2}){R}(?! (?:behoben|gefixt|gelöst|repariert|umgesetzt))",
        "Déjà signalé dans #5",
        r"(?:déjà (?:été )?(?:signal|suivi|rapport|remont|ouvert|trait|demand|évoqu|discut|connu)\w{0,4}|ya "
        r"(?:fue |está |se |ha sido |hay |existe )?(?:(?:un|una|siendo|lo) )?(?:report|registr|solicit|"
        r"abiert|trat|segu|inform|issue|sigue|está siguiendo|coment)\w{0,6}|já (?:foi |está |sendo |existe "
        r")*(?:report|relat|registr|solicit|acompanh|rastre|discut|abert|trat)\w{0,4}|già (?:stat[oa] "
        r")?(?:segnalat|apert|tracciat|discuss|riportat|trattat)\w{0,2}|уже (?:есть|обсуждается|"
        r"отслеживается|сообщал\w{0,3}|завед[её]н\w{0,2}|создан\w{0,2}|описан\w{0,2}|был\w? )|al gemeld|już "
        r"zgłoszon\w{0,2}|zgłoszon\w{0,2} już|já existe)[^.;\ue000]{0,20}{R}",
        subject="any",
    ),
    *_this(
        "tracked",
        "已在 #5 中讨论",
        r"(?:已(?:经|經)?)?(?:在|由|于) ?{R} ?(?:中|里|上|里面)?(?:被)?(?:跟踪|跟进|追踪|追蹤|讨论|討論|"
        r"反馈|處理|提出|报告|記錄|记录)",
        "#5 で対応",
        r"{R} ?(?:で|에서|로) ?(?:追跡|対応|議論|トラッキング|報告|管理|추적|논의|진행|다루)",
        subject="any",
    ),
    *_this(
        "similar",
        "This looks similar to #5",
        r"\b(?:sounds?|looks?|seems?|feels?|appears?|smells?)(?: (?:a lot|very|very much|much|exactly|"
        r"suspiciously|quite|closely|somewhat|to be))* (?:like|similar to|related to|linked to|connected "
        r"to) {FILL}{R}",
        "Same error as #5",
        r"\bsame (?:error|crash|exception|behaviou?r|symptoms?|message|stack ?trace|problem|issue|bug|thing|"
        r"failure|root cause|cause)(?: (?:here|reported|described|message))* (?:as|like|with) (?:in "
        r")?{FILL}{R}",
        "Might be #5",
        r"^(?:this |it |that )?(?:could|might|may)(?: very)?(?: well)? be {R}",
        "Possibly related to #5",
        r"\b(?:might|may|could|possibly|probably|perhaps|maybe)(?: be)?(?: (?:closely|somewhat|loosely))? "
        r"(?:related|connected|linked|similar) (?:to|with) {FILL}{R}",
        "#5 looks similar",
        r"{R} (?:looks?|seems?|might|may|could|appears?|sounds?)(?: (?:like|to|be|also|just|very|the|a|"
        r"possibly))* (?:same|similar|related|{D})",
        "Isn't this #5?",
        r"^(?:hmm+,? |so |but )?(?:isn't|is|wasn't|was|could|might) (?:this|it|that)(?: not)?(?: (?:just|"
        r"the same as|basically|be|actually|maybe))* {R}",
        subject="any",
        certain=False,
    ),
)
