"""The training objective: plain torch terms, the loss, the batches."""
