"""python3 torch_step.py NET STEPS: the CPU time of a training step in PyTorch, eager, float32, one thread; what nets.ts trains."""
import json
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WARM = 15


class Ndvi(nn.Module):
    shape, target = (16, 3, 64, 64), (16, 1)

    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for filters in (32, 64, 64, 128):
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            channels = filters
        self.all = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x):
        return self.all(x)


def block(channels, filters):
    return nn.Sequential(nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.LeakyReLU(0.2))


class UNet(nn.Module):
    shape, target = (4, 3, 128, 128), (4, 1, 128, 128)

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([block(3, 32), block(32, 64), block(64, 128)])
        self.middle = block(128, 256)
        self.up = nn.ModuleList([nn.ConvTranspose2d(c, c // 2, 2, 2) for c in (256, 128, 64)])
        self.blocks = nn.ModuleList([block(256, 128), block(128, 64), block(64, 32)])
        self.last = nn.Conv2d(32, 1, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, conv in zip(self.up, self.blocks):
            x = conv(torch.cat([skips.pop(), up(x)], 1))
        return torch.tanh(self.last(x))


def plain(channels, filters, kernel, **options):
    return nn.Conv2d(channels, filters, kernel, bias=False, **options)


def bottleneck(filters):
    return nn.Sequential(plain(filters, filters, 1), nn.ReLU(), plain(filters, filters, 3, padding=2, dilation=2), nn.ReLU(),
                         plain(filters, filters, 1))


class Round(nn.Module):
    """Of each direction relu(w * neighbour + b + x), times the direction's weight."""

    def __init__(self, filters):
        super().__init__()
        self.scales = nn.ModuleList([nn.Conv2d(filters, filters, 1, groups=filters) for _ in range(4)])

    def forward(self, x, weights):
        down, up, right, left = (scale(x) for scale in self.scales)
        shifted = (F.pad(down[:, :, :-1], (0, 0, 1, 0)), F.pad(up[:, :, 1:], (0, 0, 0, 1)),
                   F.pad(right[:, :, :, :-1], (1, 0)), F.pad(left[:, :, :, 1:], (0, 1)))
        return torch.cat([F.relu(s + x) * w for s, w in zip(shifted, weights)], 1)


class Attention(nn.Module):
    def __init__(self, filters):
        super().__init__()
        self.branch = nn.Sequential(plain(filters, 16, 3, padding=1), nn.ReLU(), plain(16, 16, 3, padding=1), nn.ReLU())
        self.weights = nn.ModuleList([nn.Conv2d(16, 1, 1) for _ in range(4)])
        self.into = nn.ModuleList([plain(filters, filters, 1), plain(4 * filters, filters, 1)])
        self.rounds = nn.ModuleList([Round(filters), Round(filters)])
        self.last = nn.Sequential(plain(4 * filters, filters, 1), nn.ReLU(), plain(filters, 1, 1), nn.Sigmoid())

    def forward(self, x):
        branch = self.branch(x)
        weights = [torch.sigmoid(weight(branch)) for weight in self.weights]
        for into, one in zip(self.into, self.rounds):
            x = one(into(x), weights)
        return self.last(x)


class Generator(nn.Module):
    def __init__(self, filters=32):
        super().__init__()
        self.first = plain(13, filters, 3, padding=1)
        self.before, self.attentive, self.after = (
            nn.ModuleList([bottleneck(filters) for _ in range(count)]) for count in (3, 3, 2))
        self.attention = Attention(filters)
        self.line = nn.Conv2d(13, 3, 1)
        self.last = plain(filters, 3, 3, padding=1)

    def forward(self, image):
        x = F.relu(self.first(image))
        for layers in self.before:
            x = F.relu(layers(x) + x)
        attention = self.attention(x)
        for layers in self.attentive:
            x = F.relu(layers(x) * attention + x)
        for layers in self.after:
            x = F.relu(layers(x) + x)
        return image[:, :3] + image[:, 12:] * (self.line(image) + self.last(x)), attention


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.halves = nn.ModuleList([nn.Conv2d(3, 32, 4, 2, 1) for _ in range(2)])
        layers, channels = [], 64
        for filters in (128, 256, 512):
            layers += [plain(channels, filters, 4, stride=2, padding=1), nn.BatchNorm2d(filters), nn.LeakyReLU(0.2)]
            channels = filters
        self.all = nn.Sequential(*layers, nn.Conv2d(channels, 1, 3, padding=1))

    def forward(self, *images):
        return self.all(torch.cat([F.leaky_relu(half(image), 0.2) for half, image in zip(self.halves, images)], 1))


def regression(net):
    net = net()
    x, y = torch.rand(net.shape), torch.rand(net.target)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def adversarial():
    generator, discriminator = Generator(), Discriminator()
    pixels = (2, 1, 128, 128)
    planes, y, counts, cloud = torch.rand(2, 13, 128, 128), torch.rand(2, 3, 128, 128), torch.ones(pixels), torch.rand(pixels)
    x = planes[:, :3]
    of_generator, of_discriminator = (
        torch.optim.Adam(net.parameters(), 1e-3, betas=(0.5, 0.999), weight_decay=1e-5) for net in (generator, discriminator))

    def counting(values):
        return (values * counts).sum() / (counts.sum() * values.shape[1])

    def shown(image):
        return image * counts + x * (1 - counts)

    def step():
        of_generator.zero_grad()
        discriminator.requires_grad_(False)
        made, attention = generator(planes)
        fake = shown(made)
        loss = (F.softplus(-discriminator(x, fake)).mean() + 100 * counting((made - y).abs())
                + counting((attention - cloud).square()))
        loss.backward()
        of_generator.step()
        of_discriminator.zero_grad()
        discriminator.requires_grad_(True)
        other = F.softplus(discriminator(x, fake.detach())).mean() + F.softplus(-discriminator(x, shown(y))).mean()
        other.backward()
        of_discriminator.step()
        other.item()
        return loss.item()
    return step


torch.set_num_threads(1)
torch.manual_seed(1)
step = {'ndvi': lambda: regression(Ndvi), 'unet': lambda: regression(UNet), 'spagan': adversarial}[sys.argv[1]]()
times = []
for number in range(WARM + int(sys.argv[2])):
    before = time.process_time()
    step()
    if number >= WARM:
        times.append((time.process_time() - before) * 1e3)
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({'milliseconds': statistics.median(times), 'version': torch.__version__, 'rss': rss}))
