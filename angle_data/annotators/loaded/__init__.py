"""Engines that load a model themselves: vLLM on a GPU, vLLM on a Ray cluster, llama.cpp on any machine.

In come chat requests in chunks; out come replies and failures. In reading order:

- `worker`: the process that holds a model, the chunks that go in and out, and the annotator around it
- `llamacpp`: any GGUF file, with llama.cpp
- `vllm_offline`: a checkpoint, with vLLM
- `ray_offline`: the same, spread over a Ray cluster
"""
