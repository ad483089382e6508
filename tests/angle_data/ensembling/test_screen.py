import pytest

from angle_data.ensembling.screen import REASONS, gate, is_near_copy

SOURCE = "Failover is disabled on the primary database."
PLACEHOLDERS = (
    "[sentence 1]", "Sentence 1", "Antonym 2:", "<your sentence here>", "**Synonymous sentence:**",
    "[first antonym sentence]", "Sentence goes here",
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "text", "reason"),
    [
        (SOURCE, "The primary database cannot fail over.", None),
        (SOURCE, "", "blank"),
        (SOURCE, " ... ", "blank"),
        ("?!", "A sentence.", "blank"),
        (SOURCE, "failover is DISABLED on the  primary database", "identical"),
        (SOURCE, "“Failover is disabled on the primary database!”", "identical"),
        *((SOURCE, text, "placeholder") for text in PLACEHOLDERS),
        (SOURCE, "Sentence " + "1" * 80, None),  # must not take exponential time
        (SOURCE, "Text 1 of the runbook", None),
        (SOURCE, "The new output was ok", None),
        (SOURCE, "Отказоустойчивость отключена на основной базе", "wrong_script"),
        (SOURCE, "主数据库上的故障转移已被禁用,请尽快检查配置", "wrong_script"),
        ("CPU 98 %", "процессор 98 %", "wrong_script"),
        ("42 %", "forty-two percent", None),  # a source without letters has no script
        (SOURCE, "Failover über den primären Knoten ist aus.", None),
    ],
)
def test_gate_reason(source, text, reason):
    assert gate(source, text) == reason
    assert reason is None or reason in REASONS


@pytest.mark.parametrize(
    ("source_length", "length", "reason"),
    [
        (90, 30, None),  # exactly a third
        (90, 29, "length_ratio"),
        (30, 90, None),  # exactly three times
        (30, 91, "length_ratio"),
        (5, 25, None),  # five times, but only 20 characters more
        (5, 26, "length_ratio"),
        (25, 5, None),
        (26, 5, "length_ratio"),
    ],
)
def test_gate_length_ratio(source_length, length, reason):
    assert gate("a" * source_length, "b" * length) == reason


@pytest.mark.parametrize(
    ("source", "antonym", "near"),
    [
        ("Retention covers the audit log.", "Retention does not cover the audit log.", True),
        ("Retention doesn't cover the audit log.", "Retention covers the audit log.", True),
        ("We can't reach the node.", "We can reach the node.", True),
        ("Nobody reads the report, which never arrives.", "Reads the report, which arrives.", True),
        ("The queue grew by a third.", "The queue shrank by a third.", True),  # one word for one
        ("Scale up before noon.", "Scale down after noon.", True),  # two words for two
        ("Scale up before noon today.", "Scale down after midnight today.", False),  # three for three
        ("Mode is session, not transaction.", "Mode is transaction, not session.", True),  # order alone
        ("The alert fired.", "The alert stayed silent all night long.", False),
    ],
)
def test_is_near_copy(source, antonym, near):
    assert is_near_copy(source, antonym) is near
