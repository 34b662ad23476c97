import pytest
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM, MistralConfig, MistralForCausalLM, Qwen3NextConfig

from cobalt_data.engines import prefixes
from cobalt_data.errors import EngineError, InputError
from cobalt_data.models import load_model, resolve_model
from cobalt_train import tree_attention
from cobalt_train.packing import pack, split_rows
from cobalt_train.scoring import Scorer, check_scores, checkpoint_layers, prepare

PROMPT = [5, 3, 90, 14, 15, 92, 6]
COMPLETIONS = [[5, 35, 89, 7], [9], [3, 2, 38, 46, 26, 43], [5, 35, 1]]
GROUPS = [(PROMPT, COMPLETIONS)]
LATER = [*PROMPT, 5, 35, 89, 7, 41, 42]  # the next turn: the first completion and its feedback
TURNS = [
    (PROMPT, COMPLETIONS),
    ([*LATER, 3, 8, 44], [[60, 61, 62], [63]]),
    (LATER, [[9, 8, 7], [3, 8, 44, 51]]),
    ([11, 12], [[13, 14]]),  # another problem
]


def gradients(model, shared_prefix, groups=GROUPS):
    """Log-probabilities, and the gradients of their sum under weights that differ from token to token."""
    model.zero_grad()
    scores = Scorer(model).score(groups, 0.8, shared_prefix)
    upstream = torch.linspace(-1, 1, scores.mask.numel()).reshape(scores.mask.shape)
    (scores.logprobs * upstream).sum().backward()
    return scores.logprobs.detach(), [parameter.grad.clone() for parameter in model.parameters()]


def assert_equal_paths(model, groups=GROUPS):
    plain, plain_gradients = gradients(model, False, groups)
    prepare(model, "it", 64, True)
    shared, shared_gradients = gradients(model, True, groups)
    torch.testing.assert_close(shared, plain, rtol=1e-5, atol=1e-5)
    ours, theirs = (torch.cat([part.flatten() for part in parts]) for parts in (shared_gradients, plain_gradients))
    assert (ours - theirs).norm() <= 1e-5 * theirs.norm()


def test_sharing_the_prompt_changes_neither_logprobs_nor_gradients(tiny_llama):
    assert_equal_paths(tiny_llama)


@pytest.mark.parametrize("shortest_shared", [1, 4, 32])
def test_prompts_that_are_nested_change_neither_logprobs_nor_gradients(tiny_llama, monkeypatch, shortest_shared):
    monkeypatch.setattr(prefixes, "SHORTEST_SHARED", shortest_shared)
    assert_equal_paths(tiny_llama, TURNS)


def test_sharing_the_prompt_changes_nothing_on_the_embedded_model_either():
    try:
        model = load_model(resolve_model("smollm2-135m"), "float32")
    except EngineError as error:
        pytest.skip(str(error))
    prompt = torch.arange(100, 140).tolist()
    later = [*prompt, 11, 12, 13, 14, 77]
    assert_equal_paths(model, [(prompt, [[11, 12, 13, 14], [500, 501]]), (later, [[11, 900, 901, 902, 903]])])


@pytest.mark.parametrize("shared_prefix", [True, False])
def test_checkpointed_layers_give_the_same_gradients_to_the_bit(tiny_llama, shared_prefix):
    prepare(tiny_llama, "it", 64, shared_prefix)
    expected = gradients(tiny_llama, shared_prefix)
    checkpoint_layers(tiny_llama, "it")
    torch.testing.assert_close(gradients(tiny_llama, shared_prefix), expected, rtol=0, atol=0)


def test_checkpointed_layers_keep_their_inputs_alone(tiny_llama):
    def kept_per_layer():
        """Elements that one layer keeps for the backward pass, its weights left aside."""
        kept = 0

        def pack(tensor):
            nonlocal kept
            kept += 0 if isinstance(tensor, torch.nn.Parameter) else tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            Scorer(tiny_llama).score(GROUPS)
        return kept

    prepare(tiny_llama, "it", 64, True)
    whole = kept_per_layer()
    checkpoint_layers(tiny_llama, "it")
    assert kept_per_layer() < whole / 4


def test_checkpointed_layers_do_not_attend_twice(tiny_llama, monkeypatch):
    calls, attend = [], tree_attention._forest_attention
    monkeypatch.setattr(tree_attention, "_forest_attention", lambda *given: calls.append(1) or attend(*given))
    prepare(tiny_llama, "it", 64, True)
    checkpoint_layers(tiny_llama, "it")
    gradients(tiny_llama, shared_prefix=True)
    assert len(calls) == tiny_llama.config.num_hidden_layers


def test_a_model_without_marked_layers_cannot_be_checkpointed():
    with pytest.raises(InputError, match="model it does not mark its layers: set gradient_checkpointing = false"):
        checkpoint_layers(torch.nn.Linear(2, 2), "it")


def test_scores_are_those_of_the_models_own_logits(tiny_llama):
    scores = Scorer(tiny_llama).score(GROUPS, 0.8, shared_prefix=False)
    for row, completion in enumerate(COMPLETIONS):
        logits = tiny_llama(torch.tensor([PROMPT + completion])).logits[0, len(PROMPT) - 1 : -1] / 0.8
        table = logits.log_softmax(-1)
        expected = table[range(len(completion)), completion]
        torch.testing.assert_close(scores.logprobs[row, : len(completion)], expected)
        torch.testing.assert_close(scores.entropies[row, : len(completion)], -(table.exp() * table).sum(-1))
        assert scores.mask[row].sum() == len(completion)


def test_the_order_of_completions_only_reorders_their_scores(tiny_llama):
    prepare(tiny_llama, "it", 64, True)
    forward = Scorer(tiny_llama).score(GROUPS)
    backward = Scorer(tiny_llama).score([(PROMPT, COMPLETIONS[::-1])])
    torch.testing.assert_close(forward.logprobs, backward.logprobs.flip(0))


def test_a_model_with_linear_attention_is_refused_by_name(tiny_llama):
    tiny_llama.config = Qwen3NextConfig(num_hidden_layers=4)
    with pytest.raises(InputError, match=r"model toy has layers of type linear_attention.*shared_prefix = false"):
        prepare(tiny_llama, "toy", 64, True)


def test_a_sliding_window_is_refused_only_where_it_slides(tiny_shape):
    for named in ({}, {"layer_types": ["sliding_attention"] * 2}):  # Mistral's configuration does not name its layers

        def model(named=named):
            return MistralForCausalLM(MistralConfig(**tiny_shape, sliding_window=64, **named)).eval()

        prepare(model(), "mistral", 64, True)
        with pytest.raises(InputError, match="sliding_attention"):
            prepare(model(), "mistral", 65, True)


def test_attention_with_soft_caps_is_refused_by_name(tiny_shape):
    model = Gemma2ForCausalLM(
        Gemma2Config(**tiny_shape, head_dim=8, layer_types=["full_attention"] * 2, final_logit_softcapping=None)
    ).eval()
    prepare(model, "gemma", 64, True)
    with pytest.raises(InputError, match="Gemma2Attention has attention with softcap"):
        Scorer(model).score(GROUPS)


def test_the_check_passes_on_a_sound_model_and_stops_a_model_that_treats_its_logits(tiny_llama):
    prepare(tiny_llama, "toy", 64, True)
    check_scores(Scorer(tiny_llama), "toy", PROMPT, COMPLETIONS, 1.0, True)
    tiny_llama.lm_head.register_forward_hook(lambda _, __, logits: logits * 0.5)
    with pytest.raises(InputError, match="model toy: log-probabilities"):
        check_scores(Scorer(tiny_llama), "toy", PROMPT, COMPLETIONS, 1.0, True)


ROWS = [(list(range(10)), [[0] * length for length in (5, 5, 4, 6)])]


@pytest.mark.parametrize(
    ("limit", "shared", "batches"),
    [
        (1000, True, [range(4)]),
        (20, True, [range(2), range(2, 4)]),
        (20, False, [range(1), range(1, 2), range(2, 3), range(3, 4)]),
        (30, False, [range(2), range(2, 3), range(3, 4)]),
        (1, True, [range(1), range(1, 2), range(2, 3), range(3, 4)]),
    ],
)
def test_micro_batches_cover_all_rows_within_the_limit(limit, shared, batches):
    assert split_rows(ROWS, limit, shared) == [[(0, rows)] for rows in batches]


def test_groups_fill_micro_batches_together_and_those_that_begin_alike_lie_side_by_side(monkeypatch):
    monkeypatch.setattr(prefixes, "SHORTEST_SHARED", 1)
    parts = split_rows(TURNS, 45, True)
    assert [[TURNS[group][0] for group, _ in part] for part in parts] == [[PROMPT, LATER, TURNS[1][0]], [[11, 12]]]
    for part in parts:
        groups = [(TURNS[group][0], TURNS[group][1][rows.start : rows.stop]) for group, rows in part]
        assert pack(groups).token_ids.shape[1] <= 45
    backwards = split_rows(TURNS[::-1], 45, True)
    assert [[(3 - group, rows) for group, rows in part] for part in backwards] == parts


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("limit", [1, 9, 14, 25, 60, 1000])
def test_every_row_is_in_one_micro_batch(limit, shared):
    seen = [(group, row) for part in split_rows(TURNS, limit, shared) for group, rows in part for row in rows]
    assert sorted(seen) == [(group, row) for group, (_, rows) in enumerate(TURNS) for row in range(len(rows))]
