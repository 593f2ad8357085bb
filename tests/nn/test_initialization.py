"""Initial weights."""

import math

import torch
from torch import nn

from rationalizer.nn.initialization import draw_xavier


def test_xavier_weights():
    torch.manual_seed(0)
    network = nn.ModuleDict({"words": nn.Embedding(50, 30), "lstm": nn.LSTM(30, 20), "scorer": nn.Linear(40, 1)})
    before = network["words"].weight.clone()
    draw_xavier(network)
    assert torch.equal(network["words"].weight, before)
    lstm, scorer = network["lstm"], network["scorer"]
    # Every gate by itself has 30 or 20 inputs and 20 outputs; taken as one matrix there would be 80.
    for matrix, inputs, outputs in ((lstm.weight_ih_l0, 30, 20), (lstm.weight_hh_l0, 20, 20), (scorer.weight, 40, 1)):
        bound = math.sqrt(6 / (inputs + outputs))
        assert 0.9 * bound < matrix.abs().max() <= bound
    for bias in (lstm.bias_ih_l0, lstm.bias_hh_l0, scorer.bias):
        assert not bias.any()
