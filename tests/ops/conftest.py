"""Small models gain nothing from threads, and those of parallel test processes get in each other's way."""

import torch

torch.set_num_threads(1)
