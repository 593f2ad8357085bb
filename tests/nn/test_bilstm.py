import pytest
import torch

from rationalizer.nn.bilstm import BiLSTM, read_by_length


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return BiLSTM(5, 4).double()


def test_states_equal_those_of_packed_sequences(encoder):
    lengths = torch.tensor([6, 2, 1, 4])
    vectors = torch.randn(4, 6, 5, dtype=torch.float64)
    mask = torch.arange(6)[None] < lengths[:, None]
    reference = torch.nn.LSTM(5, 4, batch_first=True, bidirectional=True).double()
    weights = dict(encoder.forwards.named_parameters())
    weights |= {f"{name}_reverse": w for name, w in encoder.backwards.named_parameters()}
    reference.load_state_dict(weights)
    packed = torch.nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(reference(packed)[0], batch_first=True)
    torch.testing.assert_close(encoder(vectors, mask), expected)


def test_padding_has_no_effect(encoder):
    vectors = torch.randn(2, 7, 5, dtype=torch.float64)
    mask = torch.tensor([[True] * 4 + [False] * 3] * 2)
    states = encoder(vectors, mask)
    noisy = torch.where(mask[..., None], vectors, torch.full_like(vectors, torch.nan))
    assert torch.equal(encoder(noisy, mask), states)
    assert not states[:, 4:].any()
    torch.testing.assert_close(encoder(vectors[:, :4], mask[:, :4]), states[:, :4])


def test_gradient_does_not_reach_padding(encoder):
    vectors = torch.randn(2, 5, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 3 + [False] * 2] * 2)
    encoder(vectors, mask).square().sum().backward()
    assert not vectors.grad[:, 3:].any()
    assert vectors.grad[:, :3].all()


def test_reading_by_length_changes_nothing(encoder, monkeypatch):
    monkeypatch.setattr("rationalizer.nn.bilstm.ROWS", 3)
    vectors = torch.randn(11, 9, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(9) < torch.tensor([3, 9, 0, 1, 5, 5, 2, 7, 0, 4, 1])[:, None]
    read, whole = read_by_length(encoder, vectors, mask), encoder(vectors, mask)
    torch.testing.assert_close(read, whole)
    weights = torch.randn_like(whole)
    gradients = [torch.autograd.grad((states * weights).sum(), vectors)[0] for states in (read, whole)]
    torch.testing.assert_close(*gradients)
