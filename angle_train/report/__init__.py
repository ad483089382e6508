"""What a run or an evaluation found: report.json, report.html and the table on the terminal."""

__all__: list[str] = []
