"""A raw reply in; sentences or grades out, with a reason for every dropped part.

Pure: no files, no network, and nothing here ever raises, so a better parser can read an old journal for free.
It sees wording only: off-topic sentences and swapped polarity are the ensemble's business.

In reading order:

- `parse`: the sentences of a reply, and what was cut off, refused or echoed
- `degrees`: the sentences of a reply to a request for degrees
- `overlap`: what a run tells: answers that come again, sentences and shared words by degree
- `grades`: the grades that a reply gives
- `layout`: takes off special tokens and fences; splits into marked lists or plain lines
- `structured`: finds JSON, whole or broken, and the sentences in it
- `chatter`: recognises talk around an answer, refusals and repeated prompts
"""
