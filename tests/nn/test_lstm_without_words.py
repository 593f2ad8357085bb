"""The max-pooled states of texts without each of some words, against the BiLSTM itself."""

import pytest
import torch

from rationalizer.nn.bilstm import BiLSTM
from rationalizer.nn.lstm_without_words import leave_out


@pytest.mark.parametrize("hidden", [1, 7, 8, 19, 64])
def test_same_as_the_bilstm_on_every_variant(hidden):
    torch.manual_seed(hidden)
    network = BiLSTM(5, hidden)
    lengths = torch.tensor([9, 1, 4, 12])
    mask = torch.arange(12) < lengths[:, None]
    vectors = 4 * torch.randn(4, 12, 5)  # large enough to saturate gates
    z = torch.rand(4, 12) * (torch.rand(4, 12) < 0.6) * mask
    z[:, 0] = 0.5
    z[0, 8] = z[3, 11] = 1.0
    places = [[0, 8], [0], [], z[3].nonzero().flatten().tolist()]
    with torch.inference_mode():
        states, global_state = leave_out(network, vectors[z != 0], z, lengths, places)
        start = 0
        for text, own in enumerate(places):
            for row, place in enumerate([None, *own], start):
                weights = z[text : text + 1, :, None].clone()
                if place is not None:
                    weights[:, place] = 0
                visible, real = weights * vectors[text : text + 1], mask[text : text + 1]
                expected = network(visible, real)[real].amax(0)
                torch.testing.assert_close(states[row], expected, atol=1e-6, rtol=0)
                expected = (visible.sum(1) / weights.sum(1).clamp(min=1e-6).sqrt())[0]
                torch.testing.assert_close(global_state[row], expected)
            start += 1 + len(own)
    assert start == len(states)


def test_other_texts_change_nothing():
    """Not a bit, for equal products with the input weights."""
    torch.manual_seed(0)
    network = BiLSTM(4, 16)
    for lstm in (network.forwards, network.backwards):
        lstm.weight_ih_l0.data = torch.randn_like(lstm.weight_ih_l0).round()  # exact products
    z = torch.ones(3, 6)
    vectors = torch.randn(3, 6, 4).round()
    lengths = torch.tensor([6, 6, 6])
    places = [[1, 2], [0, 5], [3]]
    with torch.inference_mode():
        together = leave_out(network, vectors.flatten(0, 1), z, lengths, places)[0].split([3, 3, 2])
        for k, states in enumerate(together):
            alone, _ = leave_out(network, vectors[k], z[k : k + 1], lengths[k : k + 1], places[k : k + 1])
            assert torch.equal(alone, states)
