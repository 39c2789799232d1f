#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes GGUF files that hold small vocabularies only, of the kinds for which no real one is at hand here.

usage: make_vocabularies.py FOLDER

wordpiece.gguf, wordpiece-cased.gguf, rwkv.gguf, plamo2.gguf: characters and parts of words
t5.gguf: the pieces and the character map of data/unigram.model, and more pieces
byid.gguf: bytes and parts of words, without merges
hybriddna.gguf: bytes, merges of words, and some of the tokens of six bases
whitespace.gguf: characters, bytes and merges of words
kind_texts.txt: a text in each line, with \\n, \\r, \\t and \\\\ for what would not be seen; dna_texts.txt: the same, of DNA
The files in data/ are these; data/ids_KIND.txt holds the ids that llama.cpp v0.5.0 gives for each text, without special
tokens in front or behind, and ids_byid.txt what the definition of tiktoken's merging gives, as llama.cpp has none.
"""
import os
import random
import struct
import sys
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
SIGN = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6


# Words of several scripts, with accents, digits and signs.
CORPUS = """The quick brown fox jumped over lazy dogs while seventeen millers kept their grey geese near water, because
nothing else was known about representation, tokenization, and understanding of unbelievable characters; numbers such as
3.14159, 1234567 or 2024-01-02 (see e.g. http://example.com/path?query=1) don't count. It's we'll they've HTTPServer
camelCase snake_case. Für Größe naïve café élève señor ñandú žluťoučký kůň příliš Łódź żółw İstanbul ΑΒΓ αβγδε Привет
мир Добрый день שלום مرحبا สวัสดี हिन्दी 你好世界 日本語 ひらがな カタカナ 한국어 ，。「」！ 🦙 👍🏽 ½ € “quotes” — …""".split()


def parts(r, words, count):
    """Parts of words: (text, whether it begins its word)."""
    out = {}
    for _ in range(4 * count):
        word = r.choice(words)
        first = r.randrange(len(word))
        out[(word[first : first + r.randint(2, 6)], first == 0)] = None
    return list(out)[:count]


def plain(word):
    """In lower case, without accents."""
    apart = unicodedata.normalize("NFD", word)
    return "".join(one for one in apart if unicodedata.category(one) != "Mn").lower()


def string(text):
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def value(item):
    """A value's type and bytes."""
    if isinstance(item, bool):
        return 7, struct.pack("<B", item)
    if isinstance(item, int):
        return 5, struct.pack("<i", item)
    if isinstance(item, float):
        return 6, struct.pack("<f", item)
    if isinstance(item, str):
        return 8, string(item)
    if isinstance(item, bytes):
        return 9, struct.pack("<IQ", 0, len(item)) + item
    kinds = [value(one) for one in item]
    return 9, struct.pack("<IQ", kinds[0][0], len(kinds)) + b"".join(data for _, data in kinds)


def write(path, model, **keys):
    entries = {"general.architecture": "llama", "tokenizer.ggml.model": model}
    entries.update({f"tokenizer.ggml.{key}": item for key, item in keys.items()})
    with open(path, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)))
        for key, item in entries.items():
            kind, data = (4, struct.pack("<I", item)) if type(item) is int else value(item)
            out.write(string(key) + struct.pack("<I", kind) + data)


def wordpiece(path, cased):
    r = random.Random(3)
    tokens = ["[PAD]"] + [f"[unused{i}]" for i in range(99)] + ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    types = [CONTROL] + [NORMAL] * 99 + [UNKNOWN] + [CONTROL] * 3
    words = CORPUS if cased else [plain(word) for word in CORPUS]
    letters = sorted(set("".join(words)) - {SIGN})
    pieces = [SIGN + one for one in letters] + letters[: len(letters) * 2 // 3]
    pieces += [(SIGN if begins else "") + text for text, begins in parts(r, words, 400)]
    for piece in dict.fromkeys(pieces):
        tokens.append(piece)
        types.append(NORMAL)
    keys = {"normalizer.lowercase": False} if cased else {}
    write(path, "bert", tokens=tokens, token_type=types, **keys)


def rwkv(path):
    r = random.Random(4)
    words = [" " + word for word in CORPUS]
    pieces = [bytes([i]) for i in range(256)] + [b"\n\n", b"  ", b"\t\t", b"\r\n", b"\xe4\xb8", b"'s", b'"\\']
    pieces += [text.encode() for text, _ in parts(r, words, 400)]
    tokens = ["<s>"]
    for piece in dict.fromkeys(pieces):
        escaped = ""
        for byte in piece:
            plain = 32 <= byte < 127 and byte != 92
            escaped += chr(byte) if plain else {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\"}.get(byte, f"\\x{byte:02x}")
        tokens.append(escaped)
    write(path, "rwkv", tokens=tokens, token_type=[CONTROL] + [NORMAL] * (len(tokens) - 1))


def plamo2(path):
    r = random.Random(8)
    tokens, types, scores = ["<|plamo:unk|>", "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>"], [CONTROL] * 4, [-900.0] * 4
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types += [BYTE] * 256
    scores += [0.0] * 256
    words = CORPUS + [" " + word for word in CORPUS] + ["\n\n", "  ", "    ", " \n"]
    letters = sorted(set("".join(words)))
    pieces = letters[: len(letters) * 3 // 4] + [text for text, _ in parts(r, words, 500)]
    for piece in dict.fromkeys(pieces):
        if piece not in tokens:
            tokens.append(piece)
            types.append(NORMAL)
            # Some are equal, so that ties are seen, and some are so bad that bytes or shorter ones are better.
            scores.append(r.choice([-float(len(piece)), -r.uniform(1.0, 20.0), -r.uniform(1.0, 20.0), -1500.0, -3000.0]))
    write(path, "plamo2", tokens=tokens, scores=scores, token_type=types)


def byte_characters():
    """How byte-level BPE writes each byte."""
    characters = {}
    extra = 0x100
    for byte in range(256):
        keeps = 33 <= byte <= 126 or 0xA1 <= byte <= 0xAC or 0xAE <= byte <= 0xFF
        characters[byte] = chr(byte if keeps else extra)
        extra += not keeps
    return characters


def merged(r, tokens, words, count):
    """Merges that make parts of words, given as lists of tokens. What they make is added to the tokens."""
    merges = []
    for _ in range(count):
        word = r.choice(words)
        at = r.randrange(max(1, len(word) - 1))
        pair = word[at : at + 2]
        if len(pair) < 2 or "".join(pair) in tokens:
            continue
        tokens.append("".join(pair))
        merges.append(" ".join(pair))
        for other in words:
            for i in range(len(other) - 1, 0, -1):
                if other[i - 1 : i + 1] == pair:
                    other[i - 1 : i + 1] = ["".join(pair)]
    return merges


def hybriddna(path):
    r = random.Random(9)
    characters = byte_characters()
    tokens = list(characters.values())
    words = [[characters[byte] for byte in (" " + word).encode()] for word in CORPUS + ["CCCCCC", "ACGT"]]
    merges = merged(r, tokens, words, 900)
    tokens += [] if "CCCCCC" in tokens else ["CCCCCC"]
    tokens += ["<dna>", "</dna>", "<oov>"]
    # Not all that there are: the others are <oov>.
    sixes = ["".join(r.choice("ATCG") for _ in range(6)) for _ in range(250)]
    tokens += [six + "\ue000" for six in dict.fromkeys(["CCCCCC", "AAAAAA", "ACGTAC", "GTAAAA", "TAAAAA"] + sixes)]
    write(path, "hybriddna", pre="qwen2", tokens=tokens, token_type=[NORMAL] * len(tokens), merges=merges)


def dna_texts(r):
    """Texts with regions, whole and cut, in both cases; none where llama.cpp is not like the family's own."""
    for _ in range(40):
        text = ""
        for _ in range(r.randint(1, 4)):
            text += r.choice(["", " the quick ", "CCCCCC ACGT", "\n", "Größe", "<oov>"])
            bases = "".join(r.choice(["A", "C", "G", "T", "a", "t", "N", "CCCCCC", "ACGTAC"]) for _ in range(r.randint(0, 20)))
            text += "<dna>" + bases + "</dna>"
        yield text + r.choice(["", " end", "<dna>", "<dna>acgta"])


def whitespace(path):
    r = random.Random(10)
    words = [list(word) for word in CORPUS]
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [CONTROL] * 3 + [UNKNOWN] + [BYTE] * 256
    letters = sorted(set("".join(CORPUS)))
    tokens += letters[: len(letters) * 3 // 4]
    merges = merged(r, tokens, [[one for one in word if one in tokens] for word in words], 600)
    write(path, "whitespace", pre="whitespace", tokens=tokens, token_type=types + [NORMAL] * (len(tokens) - 260), merges=merges,
          bos_token_id=0, eos_token_id=2, unknown_token_id=3)


def by_id(path):
    r = random.Random(5)
    characters = byte_characters()
    words = [" " + word for word in CORPUS]
    pieces = dict.fromkeys("".join(characters[b] for b in text.encode()) for text, _ in parts(r, words, 900))
    tokens = list(dict.fromkeys(list(characters.values()) + list(pieces)))
    write(path, "gpt2", pre="gpt-2", tokens=tokens, token_type=[NORMAL] * len(tokens))


def fields(data):
    """Numbers and values of the fields of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        size = varint() if size is None else size
        yield key >> 3, data[at : at + size]
        at += size


def t5(path):
    with open(os.path.join(HERE, "data", "unigram.model"), "rb") as file:
        model = list(fields(file.read()))
    tokens, scores, types = [], [], []
    for piece in (dict(fields(data)) for number, data in model if number == 1):
        tokens.append(piece[1].decode())
        scores.append(struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0)
        types.append(piece.get(3, NORMAL))
    r = random.Random(6)
    characters = sorted(set("".join(CORPUS)))
    for piece in characters + [(SIGN if begins else "") + text for text, begins in parts(r, CORPUS, 300)]:
        if piece not in tokens:
            tokens.append(piece)
            scores.append(-r.uniform(2.0, 11.0))
            types.append(NORMAL)
    charsmap = next((dict(fields(data)).get(2, b"") for number, data in model if number == 3), b"")
    keep = [i for i, one in enumerate(types) if one not in (BYTE, USER)]
    unknown = types.index(UNKNOWN)
    write(path, "t5", tokens=[tokens[i] for i in keep], scores=[scores[i] for i in keep],
          token_type=[types[i] for i in keep], precompiled_charsmap=charsmap, unknown_token_id=keep.index(unknown),
          eos_token_id=2,
          add_space_prefix=True, remove_extra_whitespaces=True, add_eos_token=False)


def golden_texts(r):
    """Texts of words, digits, signs and white space; none where llama.cpp is not like BERT (docs/tokenizers.md)."""
    words = [word for word in CORPUS if word not in ("हिन्दी", "한국어")]
    other = [" ", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "1", "42", "!", "?!", "\\", "e\u0301", "\u200b"]
    for _ in range(40):
        yield "".join(r.choice(r.choice([words, other, other])) for _ in range(r.randint(1, 12)))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    wordpiece(os.path.join(folder, "wordpiece.gguf"), False)
    wordpiece(os.path.join(folder, "wordpiece-cased.gguf"), True)
    rwkv(os.path.join(folder, "rwkv.gguf"))
    plamo2(os.path.join(folder, "plamo2.gguf"))
    by_id(os.path.join(folder, "byid.gguf"))
    hybriddna(os.path.join(folder, "hybriddna.gguf"))
    whitespace(os.path.join(folder, "whitespace.gguf"))
    t5(os.path.join(folder, "t5.gguf"))
    for name, texts in (("kind_texts", golden_texts(random.Random(7))), ("dna_texts", dna_texts(random.Random(11)))):
        with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8", newline="") as out:
            for text in texts:
                for plain_text, escape in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
                    text = text.replace(plain_text, escape)
                out.write(text + "\n")


if __name__ == "__main__":
    main()
