"""python3 spectral_net.py STEPS: the median CPU time of a training step in PyTorch, ms, eager, float32, one thread; what spectral-net-step.ts trains."""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

BANDS, CLASSES, GROUP, WARM = 218, 6, 64, 3


class Cnn1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3), nn.ReLU(),
            nn.Conv1d(16, 32, 7, stride=2, padding=3), nn.ReLU(),
            nn.Conv1d(32, 32, 7, stride=2, padding=3), nn.ReLU(),
            nn.AvgPool1d(8, 8, ceil_mode=True), nn.Flatten(), nn.Linear(7 * 32, CLASSES))

    def forward(self, x):
        return self.layers(x[:, None])


torch.set_num_threads(1)
torch.manual_seed(1)
net = Cnn1d()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-3)
x, y = 2 * torch.rand(GROUP, BANDS) - 1, torch.arange(GROUP) % CLASSES
times = []
for number in range(WARM + int(sys.argv[1])):
    before = time.process_time()
    optimizer.zero_grad()
    F.cross_entropy(net(x), y, label_smoothing=0.1).backward()
    optimizer.step()
    if number >= WARM:
        times.append((time.process_time() - before) * 1e3)
print(statistics.median(times))
