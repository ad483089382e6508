"""One table of examples for each kind of judgement: who is spoken of, what is denied, doubted or taken back.

`>5`: the issue is a duplicate of #5, `<5` the reverse, `?` tentative, `!5` denied. Comments stand on #9000.
"""

import pytest

from angle_data.gis.comments.reading import read_comment

REPO, NUMBER = "lumen/editor", 9000

KINDS = {
    "plain": r"""
        Number #5 is the same. | >5
        already part of #5 | >5
        We have seen three duplicates of #5 this week. |
        This creates a duplicate of #5 in the list |
        Duplicate of #1, #2 and #3 | >1 >2 >3
        dup #1 #2 is unrelated | >1
        Duplicate of #9000 |
        duplicate of #63_beta |
        This is #5's fault |
        #5 (dupe) | >5
    """,
    # The subject or object of the sentence may be a third issue.
    "subject": r"""
        #50 (dup of #49) has a screenshot. |
        Superseded by #5 | >5
        Fixing #3 is not planned. Closing this in favor of #5. | >5
        #5 is a duplicate of #6 |
        #5 and this one are duplicates of #6 | >6
        #28 was closed in favor of #312 |
        Can we close #45, it is a duplicate of #44 |
        #7 is a duplicate of #5, and so is this. | >5
        #41 ging als Duplikat von #5 zu. |
        Puedes cerrar #41 como duplicado de #5 |
        J'ai marqué #41 comme doublon de #5. |
        #41 は #5 の重複としてクローズ済み |
        Can someone close #41? It is a dup of #5. |
        - #41 — crash on save. Superseded by #5. |
        - #9000 — crash on save. Superseded by #5. | >5
        Merged into `main` with #5 |
        Fixed in #5. Closing as a dupe of that. | >5
        *** This bug has been marked as a duplicate of 5 *** |
        - [x] Duplicate of #5 | >5
        - [ ] Duplicate of #5 |
        Duplicates #9000, #5 and #6 | >5 >6
        Superseded by #5, seemingly | ?>5
    """,
    # A negation reaches over its clause, not over the next one.
    "negation": r"""
        I did not notice that this is a duplicate of #5. | >5
        Not only is this a duplicate of #5, it is also fixed. | >5
        I do not agree at all that a report with such a trace deserves to be called a duplicate of #5. | !5
        This is not a duplicate of #6 but of #5 | >5 !6
        Please don't fold this into #5. | !5
        Someone tagged it as duplicate of #5, those are two separate things. | !5
        No need to keep it open, duplicate of #5 | >5
        I accidentally opened a duplicate in #5. | <5
    """,
    # What was marked before is unmarked; the target is named.
    "withdrawal": r"""
        Unmarking as duplicate of #5 | !5
        Originally closed as a duplicate of #5, reopening now. | !5
        I was wrong about #5. | !5
        Since #5 was resolved in 2.1 and I still see this on 2.2, please reopen. | !5
        Reopening #5, closing this as its duplicate. | >5
        Duplicate of #5\n\nEDIT: sorry, not a duplicate after all |
        I had closed this as a duplicate of #5, but the logs differ. Reopening. | !5
        The callback fires too early, same as #5. | >5
    """,
    # A later word of the same comment replaces the target.
    "correction": r"""
        Dup of #24. I meant #27. | >27
        Duplicate of #24 (sorry, #27) | >27
        Duplicate of #27, not #24 | >27
        Duplicate of #24. Edit: #27 fixes it. | >24
        Edit: just found #25, this one is a duplicate of it. | >25
    """,
    # Doubt; where the writer closes the issue, weak doubt does not count.
    "hedge": r"""
        sort of duplicates #5 | ?>5
        We could merge this with #5. | ?>5
        Duplicate of #5, did you search? | >5
        If this is a duplicate of #5, please close it | ?>5
        This would be a duplicate of #105 if it were on v2. | ?>105
        Please check whether it is a duplicate of #22. | ?>22
        +1, same here as #110 | ?>110
        duplicate of #71, but for the Windows build | ?>71
        Let me know if this is not a duplicate of #5. |
        Should we close this in favor of #5? | ?>5
        Looks like it's the same as #5, so closing. | >5
        Possible duplicate of #5, closing | ?>5
        Unless I misread the trace, this duplicates #5. | ?>5
        What makes this not a duplicate of #5? |
    """,
    # What a program said is not what the writer says.
    "bot": r"""
        The bot closed this as a duplicate of #5. | ?>5
        According to the duplicate checker this is the same as #5. | ?>5
        The bot marked it as a duplicate of #5. It isn't. | !5
        Closing as a duplicate of #5. If this is wrong, please reopen it. | >5
        Closing this as a duplicate of #5. Feel free to reopen this if it is something else. | >5
        Closing as a duplicate of #5. Otherwise, please reopen. | >5
        Closing as a duplicate of #5. Should this be wrong, please reopen it. | >5
        Closing as a duplicate of #5. Please don't reopen it. | >5
        Closed as a duplicate of #5. I reopened it. | !5
        Why did the bot say that this is a duplicate of #5? |
        As the bot said, this is a duplicate of #5. | >5
    """,
    # Which of the two is the duplicate.
    "direction": r"""
        This and its duplicate (https://github.com/lumen/editor/issues/5) are fixed now. | <5
        #5 is a copy of this one. | <5
        I'll close #5 as a duplicate. | <5
        See #6 and its duplicate #5. |
        Closing this copy of #5. | >5
        #5 is a duplicate of this | <5
        #5 ist ein Duplikat hiervon | <5
        #5 est un doublon de ce ticket | <5
        #5 — дубликат этой задачи | <5
        #5 与本 issue 重复 | <5
        Also see #43 which is a dup. | ?<43
        #5 asks for the same. I'll close that one as a duplicate of this. | <5
        This is a duplicate of #6 and its duplicate #5 | >6
    """,
    # Commands stand anywhere, but not in a path or a quotation.
    "command": r"""
        /dup 5 | >5
        Let's fold this one away with /dup #5 | >5
        Run `/dup #5` to close it. |
    """,
    # The phrase names its target with words of its own, or after a line break.
    "target": r"""
        In favor of the newer ticket, which has a trace:\nhttps://github.com/lumen/editor/issues/5 | >5
        Closing this in favor of:\n\nhttps://github.com/lumen/editor/issues/5 | >5
        The duplicate of the row in #5 is drawn twice. |
        Duplicate of:\n- #5\n- #6 | >5 >6
        Duplicate of the one that Tom opened this morning (#5). | >5
        In favor of the approach which #5 takes. |
    """,
    # The marker and its target stand in different sentences or clauses.
    "apart": r"""
        Fixed by #5. Closing as a duplicate. |
        Duplicate. Not related to #5. |
        The root cause is the one of #5, so I'm closing this as a duplicate. | >5
        This is a duplicate, see #5. A workaround is in #6. | >5
    """,
    # Reporters close their own issue.
    "own": r"""
        Just found that #5 exists, closing. | >5
        Nevermind, already exists as #5. | >5
        Closing, #5 already landed. |
        same root cause as #13, I'm going to close this and track it over there | >13
        I found #5, which helped me. Closing. |
    """,
    "languages": r"""
        Já reportado em #5, fechando. | >5
        To samo co #5. | >5
        Déjà signalé : #5 | >5
        重复于 #5 | >5
        #5 の重複です | >5
        #5 ile aynı. | >5
        Não parece ser a mesma coisa que #5. | !5
        Est-ce que ce ne serait pas un doublon de #5 ? | ?>5
        #5 と同じ問題のようです。 | ?>5
    """,
}  # fmt: skip


def cases():
    for kind, table in KINDS.items():
        for line in table.strip().splitlines():
            body, _, expected = (part.strip() for part in line.rpartition("|"))
            yield pytest.param(body.replace("\\n", "\n"), expected.split(), id=f"{kind}: {body}")


def said(body):
    reading = read_comment(body, REPO, NUMBER, author="maria")
    signs = {"this_is_dup_of": ">", "other_is_dup_of_this": "<"}
    doubt = {"tentative": "?", "explicit": ""}
    found = [f"{doubt[link.certainty]}{signs[link.direction]}{link.number}" for link in reading.links]
    return found + [f"!{denial.number}" for denial in reading.denials]


@pytest.mark.parametrize(("body", "expected"), list(cases()))
def test_what_a_comment_states(body, expected):
    assert said(body) == expected
