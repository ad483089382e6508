"""Spreads vLLM engines over a Ray cluster with Ray Data: the offline engine, several times.

No more than two chunks of requests per engine are on their way: that is what a kill loses and what an
interrupt waits for. Uses the cluster of RAY_ADDRESS, whose machines need this package with its vllm extra, or
starts Ray on this machine.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import Future
from importlib.util import find_spec
from itertools import islice
from typing import Any

from angle_data.annotators.base import Annotator, ChatRequest, Failure, Reply, take_count
from angle_data.annotators.loaded.vllm_offline import DEFAULT_CHUNK, VLLMOffline, engine_arguments
from angle_data.annotators.loaded.worker import ChunkServer, Refusals, decode, encode
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.annotators.transport import one_line
from angle_data.errors import AnnotatorError, MissingExtraError

log = logging.getLogger("angle.annotators")

_CHUNKS_PER_ENGINE = 2
_OPENING = "first"
_SEE_LOGS = "see the workers' logs of Ray, on one machine in /tmp/ray/session_latest/logs"


class RayOffline(Annotator):
    """An annotator with `concurrency` engines in Ray actors, each with a model of its own.

    `spec.engine_options` are those of the offline engine, and `concurrency`, the number of engines (1). On a
    cluster with GPUs, an engine takes as many as its tensor_parallel_size × pipeline_parallel_size says.
    """

    def __init__(self, spec: AnnotatorSpec) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError("--engine ray", "ray")
        options = dict(spec.engine_options)
        self._chunk = take_count(options, "chunk", DEFAULT_CHUNK)
        self._engines = take_count(options, "concurrency", 1)
        self._arguments = engine_arguments(spec, options)
        self._started = False
        self._feed: Any = None
        self._answers: Iterator[str] = iter(())

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply | Failure, None]:
        """Answer chunk by chunk, as they are ready; raises as `LoadedModel.stream`, and where Ray failed."""
        source = iter(requests)
        first = [chunk for _ in range(_CHUNKS_PER_ENGINE * self._engines) if (chunk := self._take(source))]
        if not first:
            return
        in_thread, refusals = _Thread(), Refusals(VLLMOffline.name)
        try:
            await in_thread(self._start, first)
            while (answer := await in_thread(next, self._answers, None)) is not None:
                # One chunk in for each that comes out; None says that there are no more.
                await in_thread(self._feed.put, self._take(source))
                outcomes = decode(answer)
                for outcome in outcomes:
                    yield outcome
                refusals.check(outcomes)
        except asyncio.CancelledError:
            in_thread.is_abandoned = True  # it waits for a chunk; Ray and its processes end with this one
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "ray":
                raise
            raise AnnotatorError(f"Ray failed: {one_line(error)}; {_SEE_LOGS}") from error
        finally:
            await in_thread.end(self._stop)

    def _take(self, source: Iterator[ChatRequest]) -> str | None:
        chunk = list(islice(source, self._chunk))
        return encode(chunk) if chunk else None

    def _start(self, first: list[str]) -> None:
        """Start Ray and the engines, with the first chunks on their way."""
        # Read when Ray is imported: a late call must not start Ray anew while the program ends.
        os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
        import ray.data
        from ray.util.queue import Queue

        if not ray.is_initialized():
            _start_ray()
            self._started = True
        self._feed = Queue(actor_options={"num_cpus": 0})
        for item in (_OPENING, *first):
            self._feed.put(item)
        context = ray.data.DataContext.get_current()
        # One row is one chunk, and any row fills a block: a chunk travels as soon as it is there.
        context.target_max_block_size = 1
        context.enable_progress_bars = False
        log.info("loading %s with vLLM, %d times on Ray", self._arguments["model"], self._engines)
        chunks = ray.data.read_datasource(_source(self._feed), override_num_blocks=1, num_cpus=0)
        answers = chunks.map_batches(
            _Engine,
            fn_constructor_args=(self._arguments,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=self._engines),
            num_gpus=self._gpus(),
        )
        batches = answers.iter_batches(batch_size=None, prefetch_batches=0)
        self._answers = (str(answer) for batch in batches for answer in batch["answer"])

    def _stop(self) -> None:
        """End what is still worked on, and Ray unless it was there before."""
        import ray

        # Ray Data stops with the last reference to its output. If Ray went first, it would end this process.
        self._answers = iter(())
        gc.collect()
        if self._feed is not None:
            self._feed.shutdown(force=True)  # whoever still waits for a chunk ends too
            self._feed = None
        if self._started:
            ray.shutdown()
            self._started = False

    def _gpus(self) -> int | None:
        """Return the GPUs of one engine, None on a cluster without any."""
        import ray

        available = ray.cluster_resources().get("GPU", 0)
        if not available:
            return None
        sizes = (self._arguments.get(f"{kind}_parallel_size", 1) for kind in ("tensor", "pipeline"))
        wanted = math.prod(map(int, sizes))
        if wanted * self._engines > available:
            said = "%d engines of %d GPUs each, but the cluster has %d: some wait until it grows"
            log.warning(said, self._engines, wanted, available)
        return wanted


class _Thread:
    """One thread for all that waits on Ray; once it `is_abandoned`, nothing more is expected of it.

    One, because Ray's processes end with the thread that started them. Not the main one, because Ray would
    take its signal handlers.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None]
        self._calls = queue.SimpleQueue()
        self.is_abandoned = False
        threading.Thread(target=self._run, daemon=True, name="ray").start()

    async def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        future: Future[Any] = Future()
        self._calls.put((future, function, arguments))
        return await asyncio.wrap_future(future)

    async def end(self, last: Callable[[], None]) -> None:
        """End the thread after a last call, unless it has been abandoned."""
        if not self.is_abandoned:
            await self(last)
            self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            future, function, arguments = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except Exception as error:  # noqa: BLE001 - handed on to whoever waits
                    future.set_exception(error)


class _Engine:
    """What Ray Data runs in each actor: a batch of encoded chunks in, their encoded answers out."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        os.environ.update({**VLLMOffline.environment, **os.environ})
        # Ray repeats an actor's stdout on ours, which is for results.
        os.dup2(2, 1)
        self._server = ChunkServer(VLLMOffline.name, VLLMOffline.engine, arguments)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        return {"answer": [self._server(str(chunk)) for chunk in batch["chunk"]]}


def _source(feed: Any) -> Any:
    """Return a Ray datasource of one endless block stream: the chunks of `feed`, until it gives None."""
    import pyarrow as pa
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    def read() -> Iterator[Any]:
        # Ray repeats a read whose blocks were lost with a machine, but the chunks in them were taken: that
        # has to fail, and the journal tells the next run what is missing.
        if feed.empty() or feed.get() != _OPENING:
            raise RuntimeError("a machine of the cluster was lost")
        while (chunk := feed.get()) is not None:
            yield pa.table({"chunk": [chunk]})

    class Feed(Datasource):  # type: ignore[misc] # Ray may not be installed where types are checked
        def estimate_inmemory_data_size(self) -> None:
            return None

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[ReadTask]:
            metadata = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
            return [ReadTask(read, metadata)]

    return Feed()


def _start_ray() -> None:
    import ray.data

    verbose = log.isEnabledFor(logging.DEBUG)
    level = logging.INFO if verbose else logging.ERROR
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not verbose:
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(level)
    try:
        ray.init(include_dashboard=False, log_to_driver=verbose, logging_level=level)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise AnnotatorError(f"Ray cannot be started or reached: {one_line(error)}") from error
