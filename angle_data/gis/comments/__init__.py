"""The text of a comment in; the duplicate links that it states out, each with direction, certainty and place.

In reading order:
`reading`: one comment, from its text to its links; a whole thread, with what was taken back.
`readings`: keeps what was read, so that no comment is read twice by one version of the grammar.
`markdown`: blanks what the writer does not say: code, quotes, templates.
`boilerplate`: what nobody wrote for the occasion; shared with the cleaning of texts.
`references`: finds what is pointed at, such as `#26` or a link.
`sentences`: cuts the text into sentences in which a reference is one character.
`grammar`: decides which references a sentence ties to the issue, and how surely.
`phrases`: the phrasings, each with an example; a new phrasing goes here.
`needed`: which phrases a sentence can hold, seen by single words, so that only those are tried.
`vocabulary`: words for "duplicate" in any language, cue words; a new word goes here.
`subjects`: who a phrase speaks of: the commented issue, or another one that its sentence names.
`context`: what surrounds a phrase: denials, hedges, hearsay (what a bot says), questions, conditions;
    whether the writer closes the issue.
`corrections`: withdrawals ("unmarking …") and corrected targets ("Edit: I mean #27").
`doubts`: comments that the grammar is not sure about, for `gis --ask`
`explain`: what `gis explain` shows of the comments of a file.

Every pattern has an example above it (`# Finds: ...`), which a test holds it to.
"""
