"""The model: load, pooling, prompt, adapters, long text."""
