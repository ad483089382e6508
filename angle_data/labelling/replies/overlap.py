"""What a run tells of itself: answers that come again and again, and of degrees whether words give them away.

Overlap is the Jaccard of all words of a sentence and its source (`text.words`), function words included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any

from angle_data.records import DEGREES, Candidate
from angle_data.text import jaccard, normalise, words

_HIGH = (5, 4)
_LOW = (3, 2)  # a 1 shares few words in any data: it is another statement
_LEAST_TEXTS = 50
_FAIR = (0.4, 0.6)
_LEAST_ALIKE = 5
_ONE_IN = 100
_MOST_COUNTED = 100_000


class DegreeReport:
    """Counts sentences and shared words by degree.

    `higher_shares_more` is how often, of two sentences for one text, a 5 or 4 shares more words with it than
    a 3 or 2 (a tie counts half): word overlap as a guess of which is the closer one, 0.5 by chance. Outside
    0.4 to 0.6, on 50 texts or more, a model trained on the data can learn from the words alone.
    """

    def __init__(self) -> None:
        self._kept = dict.fromkeys(DEGREES, 0)
        self._shared = dict.fromkeys(DEGREES, 0.0)
        self._texts = 0  # with a high and a low degree
        self._wins = 0.0  # the sum of their shares of wins

    def add(self, source: str, sentences: Mapping[int, str]) -> None:
        """Count the sentences of one source, by degree."""
        known = words(source)
        shared = {degree: jaccard(known, words(sentence)) for degree, sentence in sentences.items()}
        for degree, overlap in shared.items():
            self._kept[degree] += 1
            self._shared[degree] += overlap
        pairs = [(shared[h], shared[low]) for h, low in product(_HIGH, _LOW) if h in shared and low in shared]
        if pairs:
            self._texts += 1
            self._wins += sum((high > low) + (high == low) / 2 for high, low in pairs) / len(pairs)

    def counts(self) -> dict[str, Any]:
        """Return by degree the number of sentences and their mean overlap, and `higher_shares_more`."""
        table: dict[str, Any] = {
            str(degree): {"kept": kept, "overlap": round(self._shared[degree] / kept, 3) if kept else None}
            for degree, kept in self._kept.items()
        }
        return table | {"higher_shares_more": round(self._wins / self._texts, 3) if self._texts else None}

    def warning(self) -> str | None:
        """Return one line about data in which shared words give the degree away, None for other data."""
        share = self._wins / max(self._texts, 1)
        if self._texts < _LEAST_TEXTS or _FAIR[0] <= share <= _FAIR[1]:
            return None
        learnt = "that shared words mean less alike" if share < _FAIR[0] else "to count shared words"
        return (
            "shared words give the degree away: a 5 or 4 shares more words with its text than a 3 or 2 in "
            f"{share:.0%} of cases (50% would tell nothing), so a model can learn {learnt}; another prompt "
            "or annotator may even it out"
        )


class AnswerCounts:
    """Counts how many texts the same sentence answers; of very many, those that came once are forgotten."""

    def __init__(self) -> None:
        self._texts: Counter[str] = Counter()
        self._source = ""  # the last text, and its sentences
        self._own = set[str]()
        self._candidates = 0

    def add(self, candidate: Candidate) -> None:
        """Count a candidate, once for each text; they come text by text."""
        if candidate.source_id != self._source:
            self._source, self._own = candidate.source_id, set()
        sentence = normalise(candidate.text)
        self._candidates += 1
        self._texts[sentence] += sentence not in self._own
        self._own.add(sentence)
        if len(self._texts) > _MOST_COUNTED:
            self._texts = Counter({text: count for text, count in self._texts.items() if count > 1})

    def warning(self) -> str | None:
        """Return one line about a sentence that answers several texts, and one in a hundred, None without."""
        if not self._texts:
            return None
        ((sentence, count),) = self._texts.most_common(1)
        if count < max(_LEAST_ALIKE, self._candidates / _ONE_IN):
            return None
        return (
            f"{sentence!r} answers {count:,} texts: this annotator repeats itself; look at candidates.jsonl "
            "before you train, or choose another model or prompt"
        )
