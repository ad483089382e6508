"""The evaluation tasks."""
