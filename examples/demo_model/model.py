# SPDX-License-Identifier: Apache-2.0
"""The network of the bundled models, written for training on a CPU.

A Llama: RMSNorm, rotary positions (theta 10000), SwiGLU, grouped-query attention, tied embeddings.
Weights and the residual stream are float32; matrix products run in bfloat16, which oneDNN does
three times faster than float32 on processors that have it. Attention, norm and loss carry their own
backward pass because the generic one reads and writes memory several times as often.

Rotary pairs are (i, i + head_dim / 2) here, two contiguous halves; export_gguf.py reorders the rows of
Q and K to the adjacent pairs that a GGUF of this architecture has. Read train.py next.
"""
import math

import torch
import torch.nn.functional as F

ROPE_THETA = 10000.0
NORM_EPS = 1e-5
VOCAB = 4096
CONTEXT = 1024

SHAPES = {
    "story": dict(dim=256, ffn=768, layers=4, heads=4, kv_heads=2, head_dim=64),
    "draft": dict(dim=64, ffn=192, layers=4, heads=2, kv_heads=1, head_dim=32),
}

COMPUTE = torch.bfloat16


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True).add_(NORM_EPS))
        ctx.save_for_backward(x, weight, scale)
        return (x * scale).mul_(weight).to(COMPUTE)

    @staticmethod
    def backward(ctx, grad):
        x, weight, scale = ctx.saved_tensors
        hat = x * scale
        grad = grad.float()
        grad_weight = (grad * hat).flatten(0, -2).sum(0)
        grad = grad * weight
        mean = (grad * hat).mean(-1, keepdim=True)
        return grad.sub_(hat.mul_(mean)).mul_(scale), grad_weight


class SwiGlu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, both):
        gate, up = both.chunk(2, -1)
        ctx.save_for_backward(both)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx, grad):
        (both,) = ctx.saved_tensors
        gate, up = both.chunk(2, -1)
        sig = torch.sigmoid(gate)
        act = gate * sig
        out = torch.empty_like(both)
        out_gate, out_up = out.chunk(2, -1)
        torch.mul(grad, act, out=out_up)
        # d silu = sig * (1 + gate * (1 - sig)) = sig + act * (1 - sig)
        torch.mul(act, 1 - sig, out=out_gate)
        out_gate.add_(sig).mul_(up).mul_(grad)
        return out


class Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return Rope.turn(x, cos, sin)

    @staticmethod
    def turn(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    @staticmethod
    def backward(ctx, grad):
        cos, sin = ctx.saved_tensors
        return Rope.turn(grad, cos, -sin), None, None


class Attention(torch.autograd.Function):
    """Causal attention by blocks of queries. q: [n, group, T, d] (n = batch * kv heads), k, v: [n, T, d]."""

    BLOCK = 256

    @staticmethod
    def forward(ctx, q, k, v):
        n, group, length, dim = q.shape
        step = Attention.BLOCK if length % Attention.BLOCK == 0 else length
        scale = 1.0 / math.sqrt(dim)
        q = q * scale
        hole = torch.full((step, step), float("-inf"), dtype=q.dtype).triu_(1)
        out = torch.empty_like(q)
        kept = []
        for start in range(0, length, step):
            end = start + step
            part = q[:, :, start:end].reshape(n, group * step, dim)
            score = torch.bmm(part, k[:, :end].transpose(1, 2))
            score.view(n, group, step, end)[..., start:] += hole
            prob = torch.softmax(score, -1)
            out[:, :, start:end] = torch.bmm(prob, v[:, :end]).view(n, group, step, dim)
            kept.append(prob)
        ctx.save_for_backward(q, k, v, *kept)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, *kept = ctx.saved_tensors
        n, group, length, dim = q.shape
        step = length // len(kept)
        grad_q = torch.empty_like(q)
        grad_k = torch.zeros(k.shape)
        grad_v = torch.zeros(v.shape)
        for index, prob in enumerate(kept):
            start, end = index * step, (index + 1) * step
            g = grad[:, :, start:end].reshape(n, group * step, dim)
            part = q[:, :, start:end].reshape(n, group * step, dim)
            grad_v[:, :end] += torch.bmm(prob.transpose(1, 2), g)
            ds = torch._softmax_backward_data(torch.bmm(g, v[:, :end].transpose(1, 2)), prob, -1, prob.dtype)
            grad_q[:, :, start:end] = torch.bmm(ds, k[:, :end]).view(n, group, step, dim)
            grad_k[:, :end] += torch.bmm(ds.transpose(1, 2), part)
        return grad_q.mul_(1.0 / math.sqrt(dim)), grad_k.to(k.dtype), grad_v.to(v.dtype)


class Loss(torch.autograd.Function):
    """Mean cross entropy of hidden @ embedding^T, with its gradient computed at once, chunk by chunk."""

    CHUNK = 2048

    @staticmethod
    def forward(ctx, hidden, embedding, target):
        weight = embedding.to(COMPUTE)
        total = torch.zeros(())
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(embedding)
        count = target.numel()
        for start in range(0, count, Loss.CHUNK):
            part = hidden[start:start + Loss.CHUNK]
            want = target[start:start + Loss.CHUNK, None]
            prob = torch.softmax(F.linear(part, weight), -1)
            picked = prob.gather(1, want).float()
            total -= picked.clamp_(min=1e-10).log_().sum()
            prob.scatter_add_(1, want, torch.full(want.shape, -1.0, dtype=prob.dtype))
            grad_hidden[start:start + Loss.CHUNK] = prob @ weight
            grad_weight += prob.t() @ part
        ctx.save_for_backward(grad_hidden.mul_(1.0 / count), grad_weight.mul_(1.0 / count))
        return total / count

    @staticmethod
    def backward(ctx, grad):
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad, grad_weight * grad, None


def rope_tables(head_dim, length):
    rate = ROPE_THETA ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * rate
    return angle.cos().float(), angle.sin().float()


def new_weights(shape, seed):
    gen = torch.Generator().manual_seed(seed)

    def rows(out, width, scale=1.0):
        return torch.randn(out, width, generator=gen) * (scale / math.sqrt(width))

    dim, ffn, head = shape["dim"], shape["ffn"], shape["head_dim"]
    kv = shape["kv_heads"] * head
    # The embedding is as large as what the layers add, so that which token it was stays visible all the way up;
    # since it is also the output matrix, the last norm starts small.
    out = {"embed": torch.randn(VOCAB, dim, generator=gen), "norm": torch.full((dim,), 0.5 / math.sqrt(dim))}
    depth = 1.0 / math.sqrt(2.0 * shape["layers"])
    for n in range(shape["layers"]):
        out[f"{n}.attn_norm"] = torch.ones(dim)
        out[f"{n}.q"] = rows(shape["heads"] * head, dim)
        out[f"{n}.k"] = rows(kv, dim)
        out[f"{n}.v"] = rows(kv, dim)
        # O starts as V turned round, so that each head begins as a weak copier of what it looks at: a model of
        # this size otherwise needs many times as long to find out that names come from further up.
        out[f"{n}.o"] = out[f"{n}.v"].view(-1, head, dim).repeat_interleave(
            shape["heads"] // shape["kv_heads"], 0).reshape(-1, dim).t().contiguous()
        out[f"{n}.ffn_norm"] = torch.ones(dim)
        out[f"{n}.gate"] = rows(ffn, dim)
        out[f"{n}.up"] = rows(ffn, dim)
        out[f"{n}.down"] = rows(dim, ffn, depth)
    return out


def hidden_states(w, shape, ids, tables, kept=None):
    """The normed last hidden states [batch * T, dim] for ids [batch, T]; for training.

    A list as kept receives what enters each layer and what leaves the last one: what heads that draft read.
    """
    batch, length = ids.shape
    heads, kv_heads, head = shape["heads"], shape["kv_heads"], shape["head_dim"]
    cos, sin = (t[:length].to(COMPUTE) for t in tables)
    x = F.embedding(ids, w["embed"])
    for n in range(shape["layers"]):
        if kept is not None:
            kept.append(x)
        h = Norm.apply(x, w[f"{n}.attn_norm"])
        qkv = F.linear(h, torch.cat((w[f"{n}.q"], w[f"{n}.k"], w[f"{n}.v"])).to(COMPUTE))
        qkv = qkv.view(batch, length, heads + 2 * kv_heads, head).transpose(1, 2)
        qk = Rope.apply(qkv[:, :heads + kv_heads], cos, sin)
        q = qk[:, :heads].reshape(batch * kv_heads, heads // kv_heads, length, head)
        k = qk[:, heads:].reshape(batch * kv_heads, length, head)
        v = qkv[:, heads + kv_heads:].reshape(batch * kv_heads, length, head)
        a = Attention.apply(q, k, v).view(batch, heads, length, head).transpose(1, 2).reshape(batch, length, -1)
        x = x + F.linear(a, w[f"{n}.o"].to(COMPUTE))
        h = Norm.apply(x, w[f"{n}.ffn_norm"])
        h = SwiGlu.apply(F.linear(h, torch.cat((w[f"{n}.gate"], w[f"{n}.up"])).to(COMPUTE)))
        x = x + F.linear(h, w[f"{n}.down"].to(COMPUTE))
    if kept is not None:
        kept.append(x)
    return Norm.apply(x, w["norm"]).flatten(0, 1)


@torch.no_grad()
def logits(w, shape, ids, tables, cache=None):
    """Plain float32 logits [T, vocab] of one sequence; cache is a list of (k, v) per layer that grows."""
    heads, kv_heads, head = shape["heads"], shape["kv_heads"], shape["head_dim"]
    past = cache[0][0].shape[1] if cache else 0
    length = len(ids)
    cos, sin = (t[past:past + length] for t in tables)
    hole = torch.full((length, past + length), float("-inf")).triu_(past + 1)

    def norm(x, weight):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + NORM_EPS) * weight

    x = w["embed"][torch.as_tensor(ids)]
    for n in range(shape["layers"]):
        h = norm(x, w[f"{n}.attn_norm"])
        q = (h @ w[f"{n}.q"].t()).view(length, heads, head).transpose(0, 1)
        k = (h @ w[f"{n}.k"].t()).view(length, kv_heads, head).transpose(0, 1)
        v = (h @ w[f"{n}.v"].t()).view(length, kv_heads, head).transpose(0, 1)
        q, k = Rope.turn(q, cos, sin), Rope.turn(k, cos, sin)
        if cache is not None:
            if past:
                k, v = torch.cat((cache[n][0], k), 1), torch.cat((cache[n][1], v), 1)
                cache[n] = (k, v)
            else:
                cache.append((k, v))
        group = heads // kv_heads
        score = q @ k.repeat_interleave(group, 0).transpose(1, 2) / math.sqrt(head) + hole
        a = (score.softmax(-1) @ v.repeat_interleave(group, 0)).transpose(0, 1).reshape(length, -1)
        x = x + a @ w[f"{n}.o"].t()
        h = norm(x, w[f"{n}.ffn_norm"])
        x = x + (F.silu(h @ w[f"{n}.gate"].t()) * (h @ w[f"{n}.up"].t())) @ w[f"{n}.down"].t()
    return norm(x, w["norm"]) @ w["embed"].t()
