"""The part of vLLM's offline interface that the toolkit uses, without a model; what a prompt says is done.

Checked against the real one by the tests that run both. Calls are written to $FAKE_VLLM_CALLS.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from vllm.sampling_params import SamplingParams

OPTIONS = {"model", "revision", "dtype", "max_model_len", "enable_prefix_caching"}
OPTIONS |= {"structured_outputs_config"}


def record(**call):
    """Write a call down."""
    with Path(os.environ["FAKE_VLLM_CALLS"]).open("a") as stream:
        stream.write(json.dumps(call) + "\n")


def obey(prompt):
    """Do what a prompt says: die, break, or wait for a file."""
    if "[die]" in prompt:
        os.kill(os.getpid(), signal.SIGKILL)
    if "[break]" in prompt:
        raise KeyError("a defect")
    if waited := re.search(r"wait for ([\w/-]+)", prompt):
        while not Path(waited[1]).exists():
            time.sleep(0.02)


def _refusal():
    """What vLLM raises for a faulty request: a ValueError before it had an error of its own."""
    if "FAKE_VLLM_OLD" in os.environ:
        return ValueError
    from vllm.exceptions import VLLMValidationError

    return VLLMValidationError


class _Tokenizer:
    """One token a word."""

    chat_template = "{{ messages }}"

    def apply_chat_template(self, messages, **_):
        return " ".join(message["content"] for message in messages)

    def __call__(self, texts, **_):
        return {"input_ids": [text.split() for text in texts]}


@dataclass
class _Output:
    prompt_token_ids: list
    outputs: list = field(default_factory=list)
    num_cached_tokens: int | None = None


class LLM:
    """A model that repeats the prompt and the seed."""

    def __init__(self, **options):
        if unknown := options.keys() - OPTIONS:
            raise TypeError(f"EngineArgs.__init__() got an unexpected keyword argument '{min(unknown)}'")
        if options["model"] == "missing":
            raise OSError("We couldn't connect to 'https://hub' to load the files\nand couldn't find them.")
        if options["model"] == "big":
            print("(EngineCore pid=7) ERROR 11-21 14:06:09 [core.py:9] ValueError: no room", file=sys.stderr)
            raise RuntimeError("Engine core initialization failed. See root cause above. Failed: {}")
        record(start=options)
        print("a banner on stdout")
        self.chat_template = None
        self.model_config = SimpleNamespace(max_model_len=options["max_model_len"])
        if options["max_model_len"] == -1:
            self.model_config.max_model_len = 100
        if options["model"] == "base":
            _Tokenizer.chat_template = None
        # Like the real engine, a process of its own.
        self.core = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        record(core=self.core.pid, worker=os.getpid())

    def get_tokenizer(self):
        return _Tokenizer()

    def get_default_sampling_params(self):
        return SamplingParams(top_p=0.9)

    def chat(self, messages, sampling_params, use_tqdm):
        assert use_tqdm is False
        prompts = [conversation[-1]["content"] for conversation in messages]
        if any("forbidden" in prompt for prompt in prompts):
            raise _refusal()("that is\nforbidden")
        record(chat=prompts, params=[vars(params) for params in sampling_params])
        for prompt in prompts:
            obey(prompt)
        return [self._output(*each) for each in zip(prompts, sampling_params, strict=True)]

    def _output(self, prompt, params):
        text = f"{prompt} #{params.seed}"
        finish = "abort" if "[abort]" in prompt else "stop"
        completion = SimpleNamespace(text=text, token_ids=text.split(), finish_reason=finish)
        return _Output(prompt.split(), [completion])
