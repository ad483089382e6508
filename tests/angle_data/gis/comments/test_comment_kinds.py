"""One table of examples for each kind of judgement: who is spoken of, what is denied, doubted or taken back.

`>5`: the issue is a duplicate of #5, `<5` the reverse, `?` tentative, `!5` denied. Comments stand on #9000.
"""

import pytest

from angle_data.gis.comments.reading import read_comment

REPO, NUMBER = "lumen/editor", 9000

KINDS = {
    # The subject or object of the sentence is a third issue.
    "subject": r"""
        #28 was closed in favor of #312 |
        Issue #12 → marked as duplicate of #13 |
        issue #8: what we deduplicate against is #9 |
        As #40 got replaced by #41, I updated the docs. |
        We folded #17 into #18 yesterday. |
        The thread in #6 has been merged with #7. |
        Your earlier ticket #30 is the same as #31. |
        #50 (dup of #49) has a screenshot. |
        I think #20 should be closed in favour of #21. |
        @ana you reported #70 which duplicates #71. |
        #15 is covered by #16, but this one needs its own fix. |
        #33 is superseded by #34 |
        Marked #44 as duplicate of #45 |
        https://github.com/lumen/editor/issues/3 is tracked in https://github.com/lumen/editor/issues/4 |
        When #61 was closed as a duplicate of #60 the label got lost. |
        Closed #80 since it duplicates #81. |
        Unlike #10 this is a duplicate of #11. | >11
        Like #10, this is a duplicate of #11. | >11
        #10 is closed, so I mark this as a duplicate of #11. | >11
        #10 is about tabs; this is a duplicate of #11 | >11
        #10 and this one are both duplicates of #11 | >11
        I looked at #10, and this is a duplicate of #11. | >11
        Closed in favor of #5 | >5
        Superseded by #5 | >5
        This was closed in favor of #5, like #4 before. | >5
        Fixing #3 is not planned. Closing this in favor of #5. | >5
        this issue (#9000) was closed in favor of #5 | >5
        #9000 → marked as duplicate of #5 | >5
    """,
    # A negation reaches over its clause, not over the next one.
    "negation": r"""
        I do not agree at all that a report with such a trace deserves to be called a duplicate of #5. | !5
        Nobody here believes this to be a dup of #5. | !5
        I fail to see how this is a duplicate of #5 | !5
        In no way is this a duplicate of #5. | !5
        There is no reason to consider this report a duplicate of #5. | !5
        This can hardly be called the same issue as #5. | !5
        That's far from being a duplicate of #5. | !5
        I refuse to accept that it duplicates #5. | !5
        I'd argue against closing this as a duplicate of #5. | !5
        This should have never been closed as a duplicate of #5. | !5
        Please don't fold this into #5. | !5
        It would be wrong to close this in favor of #5. | !5
        This isn't tracked in #5. | !5
        It is not covered by #5, as that one is about export. | !5
        #5 looks alike, but is no duplicate of this. |
        That #5 is the same problem is not correct. |
        This was wrongly attributed: it's not #5. | !5
        This is not a bug but a duplicate of #5. | >5
        Cannot reproduce, but it's a duplicate of #5 anyway. | >5
        I did not notice that this is a duplicate of #5. | >5
        No need to keep it open, duplicate of #5 | >5
        Not sure why search did not show it: duplicate of #5 | >5
        There's no doubt that this is a duplicate of #5. | >5
        We won't fix this, see #5 of which it is a duplicate. | >5
        I don't have time today; closing as duplicate of #5. | >5
        Nothing new here, same as #5 | >5
        I can't believe I missed it. Duplicate of #5. | >5
        Don't worry, it's tracked in #5. | >5
        This isn't getting fixed here because it duplicates #5 | >5
        Not only is this a duplicate of #5, it is also fixed. | >5
    """,
    # What was marked before is unmarked; the target is named.
    "withdrawal": r"""
        Unmarking as duplicate of #5 | !5
        Undoing the duplicate mark for #5 | !5
        Un-duping from #5, the trace differs. | !5
        Removing the duplicate link to #5. | !5
        I retract what I said about #5 being the same. | !5
        Reverting the duplicate label, #5 is about something else. | !5
        Reopening: I closed it too hastily as a duplicate of #5. | !5
        I shouldn't have closed this as a duplicate of #5. | !5
        This was mistaken for a duplicate of #5. | !5
        No longer a duplicate of #5 since the scope of that one changed. | !5
        Originally closed as a duplicate of #5, reopening now. | !5
        Reopened, it was not #5 after all. | !5
        I was wrong about #5. | !5
        #5 is fixed and this still happens. | !5
        Closing as a duplicate of #5.\n\nEdit: #5 has been fixed but the crash is still there. | !5
        Since #5 was resolved in 2.1 and I still see this on 2.2, please reopen. | !5
        Reopening #5, closing this as its duplicate. | >5
        This still happens, duplicate of #5 | >5
        Reopening #5 as this is the same problem. Duplicate of #5. | >5
        Removed the needs-triage label. Duplicate of #5. | >5
        The callback fires too early, same as #5. | >5
        The connection closes prematurely. Duplicate of #5. | >5
        It used to be fine. Duplicate of #5. | >5
        Reverting the last commit helps, duplicate of #5. | >5
        Removing the link works around it, tracked in #5. | >5
        Still present in 3.0. #5 is not fixed, so closing this as a duplicate of #5. | >5
    """,
    # A later word of the same comment replaces the target.
    "correction": r"""
        Duplicate of #24. Edit: I mean #27 | >27
        Duplicate of #24\n\nEDIT: #27 | >27
        Duplicate of #24 (sorry, #27) | >27
        Duplicate of #24, oops, #27 | >27
        Dup of #24. I meant #27. | >27
        Duplicate of #24\n\n*Correction*: of #27. | >27
        Same as #24. Or rather #27. | >27
        Closing in favor of #24.\n\nEdit: wrong number, it should be #27. | >27
        duplicate of #24 err #27 | >27
        Duplicate of #24 - make that #27 | >27
        Duplicate of #27, not #24 | >27
        Duplicate of #27 (not #24 as I first wrote) | >27
        Duplicate of #24. Edit: see also #27 | >24
        Duplicate of #24. Edit: #27 fixes it. | >24
        Duplicate of #24.\n\nUpdate: fixed in #27 | >24
        Duplicate of #24, sorry. #27 is unrelated. | >24
        Sorry, duplicate of #24, I mean it. | >24
        Duplicate of #24.\n\nEdit: I opened #27 for the other half. | >24
    """,
    # Doubt; where the writer closes the issue, weak doubt does not count.
    "hedge": r"""
        Seemingly a dup of #5 | ?>5
        It is kind of a duplicate of #5. | ?>5
        sort of duplicates #5 | ?>5
        Arguably the same issue as #5 | ?>5
        On first sight this is a duplicate of #5. | ?>5
        In part a duplicate of #5. | ?>5
        partially covered by #5 | ?>5
        Nearly a duplicate of #5 | ?>5
        I have a feeling this is a duplicate of #5. | ?>5
        If I read the code right this duplicates #5. | ?>5
        I bet this is a duplicate of #5 | ?>5
        My hunch: duplicate of #5 | ?>5
        Tempted to close this as a duplicate of #5. | ?>5
        Should we close this in favor of #5? | ?>5
        We could merge this with #5. | ?>5
        Would it make sense to track this in #5? | ?>5
        Consider closing this as a duplicate of #5. | ?>5
        Let's see whether this is the same as #5 first. | ?>5
        Duplicate of #5 unless proven otherwise. | ?>5
        Duplicate of #5 or am I wrong? | ?>5
        Duplicate of #5 (?) | ?>5
        There's a chance that it's a duplicate of #5. | ?>5
        What makes this not a duplicate of #5? |
        Perhaps we should fold this into #5. | ?>5
        Someone should verify, but it's a duplicate of #5 | ?>5
        vaguely the same as #5 | ?>5
        Kindly note that this is a duplicate of #5. | >5
        Looks like it's the same as #5, so closing. | >5
        This kind of issue is tracked in #5. | >5
        All reports of this sort are tracked in #5. | >5
        I'm sure this is a duplicate of #5. | >5
        Certainly a duplicate of #5. | >5
        The chance of a fix is small. Duplicate of #5. | >5
    """,
    # What a program said is not what the writer says.
    "bot": r"""
        The bot thinks this is a duplicate of #5. | ?>5
        The bot closed this as a duplicate of #5. | ?>5
        According to the duplicate checker this is the same as #5. | ?>5
        It was auto-marked as a duplicate of #5. | ?>5
        The triage action has labelled it a duplicate of #5, please check. | ?>5
        An AI told me that this is a duplicate of #5 | ?>5
        The bot claims it is a duplicate of #5, but it is wrong. | !5
        The robot called this a duplicate of #5, which is nonsense. | !5
        The bot marked it as a duplicate of #5. It isn't. | !5
        The spell checker bug is a duplicate of #5. | >5
        The install script fails, this is a duplicate of #5. | >5
        Why did the bot say that this is a duplicate of #5? |
        If you write "/dup #5", the bot closes the issue. |
        The bot answers "duplicate of #5" to everything. |
        The bot is right: duplicate of #5 | >5
        As the bot said, this is a duplicate of #5. | >5
        I agree with the bot, duplicate of #5. | >5
        @tracker-bot duplicate of #5 | >5
    """,
    # Which of the two is the duplicate.
    "direction": r"""
        This and its duplicate (https://github.com/lumen/editor/issues/5) are fixed now. | <5
        This one and its duplicates #5 and #6 are next on my list. | <5 <6
        #5 is a copy of this one. | <5
        Marking #5 as a duplicate in favour of this. | <5
        I'll close #5 as a duplicate. | <5
        Closing #5 as the duplicate since this has more details. | <5
        #5 reports the same and was closed as a duplicate of this. | <5
        See #6 and its duplicate #5. |
        #6 and its duplicate (#5) are about fonts. |
        This is a duplicate of #6 and its duplicate #5 | >6
        The original is #5. Closing this as a copy. | >5
        Closing this copy of #5. | >5
        This is a copy of #5. | >5
    """,
    # Commands stand anywhere, but not in a path or a quotation.
    "command": r"""
        Let's fold this one away with /dup #5 | >5
        Thanks all. /duplicate of #5 | >5
        Not worth two tickets, hence /dupe #5. | >5
        /close as /dup #5 | >5
        Do not use /dup #5 here. | !5
        Shall I /dup #5? | ?>5
        Run `/dup #5` to close it. |
    """,
    # The phrase names its target with words of its own, or after a line break.
    "target": r"""
        In favor of the newer ticket, which has a trace:\nhttps://github.com/lumen/editor/issues/5 | >5
        Closing in favor of the older, more detailed report that Ana wrote: #5 | >5
        Closing this in favor of:\n\nhttps://github.com/lumen/editor/issues/5 | >5
        Superseded by the new layout proposal in #5. | >5
        Tracked here:\nhttps://github.com/lumen/editor/issues/5 | >5
        Tracked as one of the tasks of #5 | >5
        Duplicate of the one that Tom opened this morning (#5). | >5
        Dup of the login one, #5 | >5
        Merged w/ #5 | >5
        Let's merge this w/ #5. | >5
        Dup w/ #5 | >5
        This is overtaken by #5. | >5
        It's duplicated with #5, close it. | >5
        duplicated with the ticket #5 | >5
        Folding it into our umbrella ticket on fonts, #5. | >5
        Grouping these under #5. | >5
        closing, see #5 (same thing) | >5
        Going with #5 instead, closing this. | >5
        Following up in #5, closing. | >5
        The duplicate of the row in #5 is drawn twice. |
        In favor of the approach which #5 takes. |
    """,
    # The marker and its target stand in different sentences or clauses.
    "apart": r"""
        The root cause is the one of #5, so I'm closing this as a duplicate. | >5
        This has the same origin as #5, hence closing as a duplicate. | >5
        The culprit is what #5 describes. I am closing this as duplicate. | >5
        Ana has opened #5 on the same topic an hour before you. Closing as a duplicate. | >5
        There was #5 before. I am going to close this as a duplicate. | >5
        #5 has the details and a patch is in the works.\n\nClosing as a duplicate. | >5
        It was #5 that asked for it first. Marked as a duplicate. | >5
        Our answer in #5 still holds. Closing as duplicate. | >5
        Sorry, I should have searched better, #5 is what I wanted. Closing as dup. | >5
        It breaks since #5 was merged. Closing as a duplicate. |
        Fixed by #5. Closing as a duplicate. |
        The fix in #5 caused it. It is a known problem, closing as a duplicate. |
        Closing as a duplicate. A workaround is in #5. |
        Duplicate. Not related to #5. |
        I could reproduce it with the steps of #5. Is it a duplicate? | ?>5
    """,
    # Cases of the reporter, who closes their own issue.
    "own": r"""
        I found #5, same problem, closing mine. | >5
        Just found that #5 exists, closing. | >5
        Sorry, I posted this twice, see #5. Closing. | >5
        This was submitted twice (#5), closing this one. | >5
        Nevermind, already exists as #5. | >5
        oh, it's #5. closing, sorry | >5
        #5 describes exactly this. Closing. | >5
        #5 is exactly what I have, so I close. | >5
        As #5 asks for the same thing, I'm closing this. | >5
        I found #5, which helped me. Closing. |
        I found #5 but it is not the same. |
        Closing, #5 already landed. |
        Closing, this was already released with #5. |
        Closing, #5 is the follow-up that I wrote. |
        Closing; the solution of #5 works here too. |
        Closing, see #5. |
        Closing because of the reasons given in #5. |
    """,
    "portuguese": r"""
        Já reportado em #5, fechando. | >5
        Esse problema já foi relatado na issue #5. | >5
        Fechando esta em favor da issue #5. | >5
        Duplicata de #5 | >5
        Duplicado de #5. | >5
        Isso é uma duplicata da #5. | >5
        Mesma coisa que a #5. | >5
        É o mesmo erro da #5. | >5
        Vou fechar como duplicada, acompanhe em #5. | >5
        Parece duplicado de #5. | ?>5
        Talvez seja a mesma coisa que #5 | ?>5
        Será que é duplicado de #5? | ?>5
        Isso não é duplicado de #5. | !5
        Não parece ser a mesma coisa que #5. | !5
    """,
    "polish": r"""
        To jest duplikat #5, zamykam. | >5
        Jest to duplikat zgłoszenia #5. | >5
        To zgłoszenie jest duplikatem #5 | >5
        To nie jest duplikat #5. | !5
        Chyba jest to duplikat #5. | ?>5
        To samo co #5. | >5
    """,
    "languages": r"""
        Cela fait doublon avec #5. | >5
        Déjà signalé : #5 | >5
        Duplikat zu #5. | >5
        Das ist dasselbe wie #5. | >5
        Gibt es schon: #5 | >5
        Ya está reportado en #5, cierro. | >5
        Es lo mismo que #5. | >5
        Stesso problema di #5. | >5
        Повтор #5 | >5
        То же самое, что и #5. | >5
        重复于 #5 | >5
        #5 の重複です | >5
        #5 중복 | >5
        Dubbel van #5 | >5
        Samma som #5 | >5
        #5 ile aynı. | >5
        Це дубль #5 | >5
        No creo que sea un duplicado de #5. | !5
        Ce n'est pas la même chose que #5. | !5
        Das hat nichts mit #5 zu tun, kein Duplikat. | !5
    """,
    "plain": r"""
        This issue is a repeat of #5. | >5
        Same question as #5. | >5
        same topic with #5 | >5
        It's the same like #5, close. | >5
        Already exist: #5 | >5
        Repeated issue, see #5. | >5
        Number #5 is the same. | >5
        Please see #5, it is the same issue. | >5
        dup-of #5 | >5
        one of the many duplicates of #5 | >5
        already part of #5 | >5
        This comes down to #5, closing. | >5
        Work on this goes on in #5. | >5
        Every duplicate of #5 gets closed. |
        We have seen three duplicates of #5 this week. |
        Same setup as in #5. |
    """,
}  # fmt: skip


def cases():
    for kind, table in KINDS.items():
        for line in table.strip().splitlines():
            body, _, expected = line.strip().rpartition("|")
            yield pytest.param(
                body.strip().replace("\\n", "\n"), expected.split(), id=f"{kind}: {body.strip()}"
            )


def said(body):
    reading = read_comment(body, REPO, NUMBER, author="maria")
    signs = {"this_is_dup_of": ">", "other_is_dup_of_this": "<"}
    found = [
        ("?" if link.certainty == "tentative" else "") + signs[link.direction] + str(link.number)
        for link in reading.links
    ]
    return found + [f"!{denial.number}" for denial in reading.denials]


@pytest.mark.parametrize(("body", "expected"), list(cases()))
def test_what_a_comment_states(body, expected):
    assert said(body) == expected
