"""Who answers: engines that take chat requests and give replies, and the choice between them.

In come the options of a command and an iterator of `ChatRequest`; out comes a stream of `Reply` and
`Failure`, in any order. In reading order:

- `base`: requests, replies, failures, the key of a request, and what every engine can do
- `spec`: a decided annotator
- `models`: short model names, services and prices
- `choice`: from options to a spec, and the engine of that name, imported on use; add an engine there
- `messages`: what a message says, sorted into text, thoughts, refusals, arguments of tools
- `answers`: from a service's JSON to what it says: text, how it ended, refusal, tokens, error
- `thinking`: takes a model's thoughts off its answer
- `recorded`: replies from a file, the shortest engine
- `server`: any OpenAI-compatible address, and its retries
- `endpoints`: which address takes the next request
- `limits`: when the next request to an address may go out: rates, requests in flight, Retry-After, pauses
- `transport`: the chat protocol over HTTP, keys and proxies
- `batch`: OpenAI's Batch API; what a run submits and fetches
- `batch_service`: the calls of the Batch API and the rows of its files
- `batch_state`: what a run has submitted, on disk
- `loaded/`: engines that load the model themselves: llama.cpp, vLLM, vLLM on Ray
"""
