import pytest
import torch
from toy_model import save_toy_model
from transformers import LlamaConfig, LlamaForCausalLM

from cobalt_data.commit import Change, commit
from cobalt_data.dataset import table_from_rows
from cobalt_data.rows import Problem, Prompt
from sandbox import Judge, Pool


@pytest.fixture
def tiny_shape():
    """The shape of a model that computes in milliseconds, as fields of a transformers config."""
    return {
        "vocab_size": 97,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
    }


@pytest.fixture
def tiny_llama(tiny_shape):
    """A random Llama with grouped heads and tied weights, in float32."""
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**tiny_shape, tie_word_embeddings=True)).eval()


WORDS = ["one", "two", "three"]
PROGRAMS = [f"```python\nprint({number})\n```\n" for number in (1, 2, 3)]


@pytest.fixture(scope="session")
def toy_model(tmp_path_factory):
    """A model directory whose tokens are whole programs: untrained, it solves a problem now and then."""
    return save_toy_model(tmp_path_factory.mktemp("models") / "toy", ["print", "hm ", *WORDS, *PROGRAMS])


@pytest.fixture
def make_version(tmp_path):
    """Makes versions with one problem and one prompt per statement: print the number that its second word means.

    Every statement is on the side `split`; those of `held_out` are there once more, worded anew, for validation.
    """

    def make(statements=tuple(f"print {word}" for word in WORDS), split="train", tests=True, prompts=True, held_out=()):
        rows = {"problems": [], "prompts": []}
        for statement, split in [*((each, split) for each in statements), *((each, "validation") for each in held_out)]:
            number = WORDS.index(statement.split()[1]) + 1
            test = {"kind": "stdin", "public": True, "input": "", "output": str(number)}
            name = f"toy/{statement}"
            problem = Problem(name, "toy", statement, None, statement, "", (test,), Judge(), (), {}, split)
            chat = ({"role": "user", "content": statement},)
            prompt = Prompt(None, name, 0, chat, (test,) if tests else (), Judge(), 0.0, None, 4, split)
            rows["problems"].append(problem.to_row())
            rows["prompts"].append(prompt.to_row())
        kept = rows if prompts else {"problems": rows["problems"]}
        tables = {name: table_from_rows(name, of_table) for name, of_table in kept.items()}
        directory = tmp_path / f"dataset-{len(list(tmp_path.glob('dataset-*')))}"
        return commit(Change("import", {"format": "toy"}, None, tables, {}), dataset=directory)

    return make


@pytest.fixture
def toy_version(make_version):
    return make_version()


@pytest.fixture(scope="session")
def pool():
    with Pool("process", workers=1) as pool:
        yield pool
