"""An engine that answers by a function of chat and seed: for tests of what is done with completions, whatever they are."""

from cobalt_data.engines.base import Completion


class ScriptedEngine:
    """`answer(chat, seed)` gives a text; a token is a word. `calls` holds the chats and seeds of every call."""

    name = "scripted"
    model = "script"
    model_revision = "1"
    parallel_calls = 2

    def __init__(self, answer, context=None):
        self.answer = answer
        self.context = context
        self.calls = []

    def session(self):
        return self

    def complete(self, chats, seeds, sampling):
        self.calls.append((list(chats), [list(group) for group in seeds]))
        return [[self._completion(chat, seed) for seed in group] for chat, group in zip(chats, seeds, strict=True)]

    def count_tokens(self, chat):
        return sum(len(message["content"].split()) for message in chat)

    def close(self):
        pass

    def _completion(self, chat, seed):
        text = self.answer(chat, seed)
        return Completion(text, "stop", self.count_tokens(chat), len(text.split()))


def block(program):
    return f"```python\n{program}\n```"
