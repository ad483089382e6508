"""The candidates of the demo's recorded replies, polarities as the annotators were asked for."""

import pytest

from angle_data.jsonl import read_jsonl
from angle_data.labelling.replies.parse import parse_reply
from angle_data.records import Candidate


@pytest.fixture(scope="session")
def corpus(examples):
    found = []
    for file in sorted((examples / "replies").glob("annotator-[abc].jsonl")):
        for _, row in read_jsonl(file):
            key = f"{row['annotator']}-{row['id']}-{row['polarity']}"
            parts = parse_reply(row["reply"], source=row["text"], finish="unknown", size=2)
            known = {"source_id": row["id"], "source": row["text"], "polarity": row["polarity"]}
            known |= {"model": row["annotator"], "key": key}
            found += [Candidate(text=part.text, **known) for part in parts if part.reason is None]
    return found
