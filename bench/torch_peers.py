"""Models of PyTorch beside which troupe is measured (gpu_peers), and the ways in which PyTorch runs them."""
import copy
import time

import torch


class UNet(torch.nn.Module):
    """unet_small's architecture: three levels of 32, 64 and 128 channels, 256 in the middle, groups of channels
    normalised."""

    def __init__(self):
        super().__init__()

        def twice(inputs, outputs):
            layers = []
            for channels in (inputs, outputs):
                layers += [torch.nn.Conv2d(channels, outputs, 3, padding=1), torch.nn.GroupNorm(8, outputs),
                           torch.nn.SiLU()]
            return torch.nn.Sequential(*layers)

        self.down = torch.nn.ModuleList([twice(3, 32), twice(32, 64), twice(64, 128)])
        self.middle = twice(128, 256)
        self.up = torch.nn.ModuleList([torch.nn.ConvTranspose2d(2 * n, n, 2, stride=2) for n in (128, 64, 32)])
        self.joined = torch.nn.ModuleList([twice(2 * n, n) for n in (128, 64, 32)])
        self.out = torch.nn.Conv2d(32, 3, 1)

    def forward(self, x):
        kept = []
        for level in self.down:
            kept.append(level(x))
            x = torch.nn.functional.max_pool2d(kept[-1], 2)
        x = self.middle(x)
        for up, level in zip(self.up, self.joined):
            x = level(torch.cat([up(x), kept.pop()], 1))
        return self.out(x)


def build(name, batch):
    if name == "unet_small":
        return UNet(), (torch.randn(batch, 3, 128, 128),)
    if name == "bert_base":
        import transformers
        model = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=True)
        return model, (torch.randint(0, 30000, (batch, 128)),)
    import torchvision
    return getattr(torchvision.models, name)(weights=None), (torch.randn(batch, 3, 224, 224),)


def decoder(name):
    """A decoder of PyTorch, and how many layers and heads of keys it has."""
    import transformers
    if name == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config()), 12, 12
    config = transformers.LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
                                      num_attention_heads=32, num_key_value_heads=4, vocab_size=32000)
    return transformers.LlamaForCausalLM(config), 22, 4


def step(name, cached):
    """A decoder with the inputs of a step: one token, and the keys and values of those before it."""
    model, layers, heads = decoder(name)
    past = [torch.randn(1, heads, cached, 64) for _ in range(2 * layers)]
    return WithCache(model), [torch.randint(0, 30000, (1, 1)), *past]


def prompt(name, positions):
    """A decoder with a prompt, of which the last position's logits are wanted, and the keys and values of all."""
    return Prompt(decoder(name)[0]), [torch.randint(0, 30000, (1, positions))]


class WithCache(torch.nn.Module):
    """A decoder whose keys and values are inputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, token, *past):
        import transformers
        cache = transformers.DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        return self.model(token, past_key_values=cache, use_cache=True)


class Prompt(torch.nn.Module):
    """A decoder without a past."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens, use_cache=True, logits_to_keep=1)


class Peer:
    """A model of PyTorch on the GPU, and the ways to run it once: eagerly, as a replayed CUDA graph, and compiled in
    each of some modes of torch.compile, images with their channels last. `compile_s`: the seconds that each took."""

    def __init__(self, model, inputs, half, modes):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        torch._dynamo.reset()
        self.model = model.eval().cuda()
        self.inputs = [x.cuda() for x in inputs]
        if half:
            self.model = self.model.half()
            self.inputs = [x.half() if x.is_floating_point() else x for x in self.inputs]
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.no_grad():
            with torch.cuda.stream(stream):
                for _ in range(5):
                    self.model(*self.inputs)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, stream=stream):
                self.model(*self.inputs)
        self.ways = {"eager": lambda: self.model(*self.inputs), "graph": graph.replay}
        self.compile_s = {}
        for mode in modes:
            self.ways[mode] = self.compiled(mode)

    def compiled(self, mode):
        model, inputs = copy.deepcopy(self.model), self.inputs
        if len(inputs) == 1 and inputs[0].dim() == 4:
            model = model.to(memory_format=torch.channels_last)
            inputs = [inputs[0].to(memory_format=torch.channels_last)]
        run, begin = torch.compile(model, mode=mode), time.perf_counter()
        with torch.no_grad():
            for _ in range(3):  # the second call records the graph, the third replays it
                run(*inputs)
        torch.cuda.synchronize()
        self.compile_s[mode] = time.perf_counter() - begin
        return lambda: run(*inputs)

    def samples(self, way, count):
        """Milliseconds of single runs."""
        taken = []
        with torch.no_grad():
            for i in range(10 + count):
                begin = time.perf_counter()
                self.ways[way]()
                torch.cuda.synchronize()
                if i >= 10:
                    taken.append((time.perf_counter() - begin) * 1e3)
        return taken

    def runs_per_s(self, way, count):
        """How many runs a second are done if each is asked for while those before it are under way."""
        with torch.no_grad():
            for i in range(10 + count):
                if i == 10:
                    torch.cuda.synchronize()
                    begin = time.perf_counter()
                self.ways[way]()
            torch.cuda.synchronize()
        return count / (time.perf_counter() - begin)
