"""A directory or hub id and a recipe's `[backbone]` section in, a Sentence Transformers model out.

In reading order:
`load`: loads a model as it is or as a recipe wants it trained, and finishes a trained one.
`admission`: what a model must be: routes for queries and documents, tokens that it knows, the cosine.
`pooling`: how token embeddings become one embedding of a text.
`prompt`: what stands around every text, kept in the saved model.
`roles`: what tells a model that a text is a query or a document: prompts and routes.
`routes`: the routes of an asymmetric model before training.
`adapters`: LoRA adapters and 4-bit weights.
`activations`: the file that keeps what frozen layers make of a text.
`length`: how many tokens of a text the model should read.
"""
