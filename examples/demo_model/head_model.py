# SPDX-License-Identifier: Apache-2.0
"""The two heads that draft for the story model, written for training on a CPU as model.py is.

Both read states inside the target and predict tokens beyond the next one; both are trained on their own outputs
for several steps, because that is how they run. Row r of step s stands at position r + s: it has seen the target
up to position r and predicts the token at r + s + 2.

Eagle3: three states of position r become one feature, g = fc [low; mid; high]. One decoder layer reads
[norm(embedding of the token at r + 1); norm(g)], adds its attention to g and then its feed-forward part; that sum
is the feature of the next step, and norm and a small output matrix make it logits of a draft vocabulary. A row of
a later step sees the keys that the first step made for positions up to r and those that it made itself since.

Mlp: LayerNorm, fc1, SiLU, fc2 on the state that enters the target's last layer. The result is the next input, and
its product with the target's output matrix gives the logits: the token drawn in between is never seen.
"""
import math

import torch
import torch.nn.functional as F

import model as net
import read_gguf

LAYER_NORM_EPS = 1e-5


class Target:
    def __init__(self, path):
        self.meta, self.weights, self.shape = read_gguf.read_target(path)
        self.tables = net.rope_tables(self.shape["head_dim"], net.CONTEXT + 16)

    @torch.no_grad()
    def states(self, ids):
        """(states of each layer, logits [batch, T, vocab]) in the type of net.COMPUTE."""
        kept = []
        hidden = net.hidden_states(self.weights, self.shape, ids, self.tables, kept)
        return kept, F.linear(hidden, self.weights["embed"].to(net.COMPUTE)).view(*ids.shape, -1)


class SoftLoss(torch.autograd.Function):
    """Mean cross entropy against distributions; hidden [N, dim], weight [V, dim], want [N, V].

    The gradient is made together with the loss, in chunks, so that the probabilities are never kept.
    """

    CHUNK = 1024

    @staticmethod
    def forward(ctx, hidden, weight, want):
        narrow = weight.to(net.COMPUTE)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros(weight.shape) if weight.requires_grad else None
        total, share = 0.0, 1.0 / max(1, hidden.shape[0])
        for start in range(0, hidden.shape[0], SoftLoss.CHUNK):
            rows = slice(start, start + SoftLoss.CHUNK)
            part = hidden[rows]
            prob = torch.softmax(F.linear(part, narrow), -1)
            total -= float((prob.clamp(min=1e-10).log_() * want[rows]).sum(-1).float().sum())
            prob.sub_(want[rows]).mul_(share)
            grad_hidden[rows] = prob @ narrow
            if grad_weight is not None:
                grad_weight += prob.t() @ part
        ctx.save_for_backward(grad_hidden, grad_weight)
        return torch.tensor(total * share)

    @staticmethod
    def backward(ctx, grad):
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad, None if grad_weight is None else grad_weight * grad, None


class OwnRows(torch.autograd.Function):
    """Causal attention by blocks of queries, in which each row also sees keys of its own.

    q: [n, group, T, d]; k, v: [n, T, d], under a causal mask; own: keys, then values, all [n, T, d]: query t sees
    row t of each.
    """

    BLOCK = 128

    @staticmethod
    def forward(ctx, q, k, v, *own):
        n, group, length, dim = q.shape
        step = OwnRows.BLOCK if length % OwnRows.BLOCK == 0 else length
        q = q * (1.0 / math.sqrt(dim))
        count = len(own) // 2
        hole = torch.full((step, step), float("-inf"), dtype=q.dtype).triu_(1)
        out, kept = torch.empty_like(q), []
        for start in range(0, length, step):
            end = start + step
            part = q[:, :, start:end]
            score = torch.empty(n, group, step, end + count, dtype=q.dtype)
            product = torch.bmm(part.reshape(n, group * step, dim), k[:, :end].transpose(1, 2))
            score[..., :end] = product.view(n, group, step, end)
            score[..., start:end] += hole
            for index in range(count):
                score[..., end + index] = (part * own[index][:, None, start:end]).sum(-1)
            prob = torch.softmax(score, -1)
            block = torch.bmm(prob[..., :end].reshape(n, group * step, end), v[:, :end]).view(n, group, step, dim)
            for index in range(count):
                block += prob[..., end + index, None] * own[count + index][:, None, start:end]
            out[:, :, start:end] = block
            kept.append(prob)
        ctx.save_for_backward(q, k, v, *own, *kept)
        ctx.count = count
        return out

    @staticmethod
    def backward(ctx, grad):
        count = ctx.count
        q, k, v = ctx.saved_tensors[:3]
        own, kept = ctx.saved_tensors[3:3 + 2 * count], ctx.saved_tensors[3 + 2 * count:]
        n, group, length, dim = q.shape
        step = length // len(kept)
        grad_q = torch.empty_like(q)
        grad_k, grad_v = torch.zeros(k.shape), torch.zeros(v.shape)
        grad_own = [torch.empty_like(x) for x in own]
        for number, prob in enumerate(kept):
            start, end = number * step, (number + 1) * step
            g, part = grad[:, :, start:end], q[:, :, start:end]
            flat, queries = g.reshape(n, group * step, dim), part.reshape(n, group * step, dim)
            change = torch.empty_like(prob)
            change[..., :end] = torch.bmm(flat, v[:, :end].transpose(1, 2)).view(n, group, step, end)
            for index in range(count):
                change[..., end + index] = (g * own[count + index][:, None, start:end]).sum(-1)
                grad_own[count + index][:, start:end] = (g * prob[..., end + index, None]).sum(1)
            change = torch._softmax_backward_data(change, prob, -1, prob.dtype)
            known = change[..., :end].reshape(n, group * step, end)
            grad_v[:, :end] += torch.bmm(prob[..., :end].reshape(n, group * step, end).transpose(1, 2), flat)
            grad_k[:, :end] += torch.bmm(known.transpose(1, 2), queries)
            back = torch.bmm(known, k[:, :end]).view(n, group, step, dim)
            for index in range(count):
                own_change = change[..., end + index, None]
                back += own_change * own[index][:, None, start:end]
                grad_own[index][:, start:end] = (own_change * part).sum(1)
            grad_q[:, :, start:end] = back
        return (grad_q.mul_(1.0 / math.sqrt(dim)), grad_k.to(k.dtype), grad_v.to(v.dtype), *grad_own)


def rows_of(gen, out, width, scale=1.0):
    return torch.randn(out, width, generator=gen) * (scale / math.sqrt(width))


class Eagle3:
    LAYERS = (1, 3, 4)  # inputs of these layers of the target; its number of layers: what leaves the last one
    SHAPE = dict(heads=4, kv_heads=2, head_dim=64, ffn=256)
    DRAFT_VOCAB = 2048

    @staticmethod
    def new_weights(target, tokens, seed):
        """tokens: ids of the draft vocabulary, whose logits start as the target's own.

        Only attention can bring the token's embedding into the sum, and a text repeats itself, so the heads start
        with something to do: those of the first key head look at the row itself, those of the others at rows that
        stand where the same token stood before, and all bring the embedding of what they find.
        """
        gen = torch.Generator().manual_seed(seed)
        dim, s = target["embed"].shape[1], Eagle3.SHAPE
        head, kv_heads = s["head_dim"], s["kv_heads"]
        group, q, kv = s["heads"] // kv_heads, s["heads"] * head, kv_heads * head
        fc = rows_of(gen, dim, 3 * dim, 0.2)
        fc[:, :dim] += torch.eye(dim)
        fc[:, 2 * dim:] += torch.eye(dim)
        same = rows_of(gen, kv, dim).view(kv_heads, head, dim)
        queries, keys = (rows_of(gen, kv, 2 * dim, 0.3).view(kv_heads, head, 2, dim) for _ in range(2))
        values = rows_of(gen, kv, 2 * dim, 0.5).view(kv_heads, head, 2, dim)
        queries[:, :, 0] += same
        keys[0, :, 0] += same[0]
        keys[1:, :, 1] += same[1:]
        values[:, :, 0] += rows_of(gen, kv, dim).view(kv_heads, head, dim)
        o = 0.5 * values[:, :, 0].repeat_interleave(group, 0).reshape(q, dim).t()
        return {"fc": fc, "token_norm": torch.ones(dim), "feature_norm": torch.ones(dim),
                "q": queries.repeat_interleave(group, 0).reshape(q, 2 * dim), "k": keys.reshape(kv, 2 * dim),
                "v": values.reshape(kv, 2 * dim), "o": o.contiguous(), "ffn_norm": torch.ones(dim),
                "gate": rows_of(gen, s["ffn"], dim), "up": rows_of(gen, s["ffn"], dim),
                "down": rows_of(gen, dim, s["ffn"], 0.5), "norm": target["norm"].clone(),
                "output": target["embed"][tokens].clone()}

    @staticmethod
    def steps(w, embed, kept, ids, count, tables):
        """Normed states [batch * T, dim] of each step; ids [batch, T + count], kept: the target's states of these."""
        s, narrow = Eagle3.SHAPE, net.COMPUTE
        batch, length = ids.shape[0], ids.shape[1] - count
        heads, kv_heads, head = s["heads"], s["kv_heads"], s["head_dim"]
        states = torch.cat([kept[n][:, :length] for n in Eagle3.LAYERS], -1)
        g = F.linear(states.to(narrow), w["fc"].to(narrow)).float()
        qkv_weight = torch.cat((w["q"], w["k"], w["v"])).to(narrow)
        ffn_weight = torch.cat((w["gate"], w["up"])).to(narrow)
        keys, values = [], []
        for n in range(count):
            token = F.embedding(ids[:, n + 1:n + 1 + length], embed)
            both = torch.cat((net.Norm.apply(token, w["token_norm"]), net.Norm.apply(g, w["feature_norm"])), -1)
            qkv = F.linear(both, qkv_weight).view(batch, length, heads + 2 * kv_heads, head).transpose(1, 2)
            cos, sin = (t[n:n + length].to(narrow) for t in tables)
            qk = net.Rope.apply(qkv[:, :heads + kv_heads], cos, sin)
            q = qk[:, :heads].reshape(batch * kv_heads, heads // kv_heads, length, head)
            keys.append(qk[:, heads:].reshape(batch * kv_heads, length, head))
            values.append(qkv[:, heads + kv_heads:].reshape(batch * kv_heads, length, head))
            a = OwnRows.apply(q, keys[0], values[0], *keys[1:], *values[1:])
            a = a.view(batch, heads, length, head).transpose(1, 2).reshape(batch, length, -1)
            x = g + F.linear(a, w["o"].to(narrow))
            h = net.SwiGlu.apply(F.linear(net.Norm.apply(x, w["ffn_norm"]), ffn_weight))
            g = x + F.linear(h, w["down"].to(narrow))
            yield net.Norm.apply(g, w["norm"]).flatten(0, 1)


class Mlp:
    LAYER = -2  # of the kept states: what enters the last layer

    @staticmethod
    def new_weights(target, seed):
        gen = torch.Generator().manual_seed(seed)
        dim = target["embed"].shape[1]
        return {"norm": torch.ones(dim), "norm_bias": torch.zeros(dim), "fc1": rows_of(gen, dim, dim),
                "fc2": rows_of(gen, dim, dim, 0.5)}

    @staticmethod
    def steps(w, kept, length, count):
        """States [batch * T, dim] of each step for the first T positions; fc1 and fc2 are [out, in] here."""
        narrow = net.COMPUTE
        x = kept[Mlp.LAYER][:, :length].flatten(0, 1)
        for _ in range(count):
            h = F.layer_norm(x.float(), x.shape[-1:], w["norm"], w["norm_bias"], LAYER_NORM_EPS).to(narrow)
            h = F.silu(F.linear(h, w["fc1"].to(narrow)))
            x = F.linear(h, w["fc2"].to(narrow))
            yield x
