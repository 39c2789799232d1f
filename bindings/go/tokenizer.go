// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// Tokenizer turns text into tokens and back. Any number of goroutines may use one.
type Tokenizer struct{ object }

func (t *Tokenizer) pointer() *object {
	if t == nil {
		return nil
	}
	return &t.object
}

// LoadTokenizer loads the tokenizer of a GGUF file or a SentencePiece model file. Of a model's options "pre_tokenizer" counts.
func LoadTokenizer(path string, options ...ModelOption) (*Tokenizer, error) {
	t := new(Tokenizer)
	if err := t.take(kindTokenizer, native.GenTokenizerFree, func(out []uintptr) error {
		if len(options) == 0 {
			return native.GenTokenizerLoad(path, out)
		}
		return build(options, native.GenModelOptionsNew, native.GenModelOptionsFree, func(o uintptr) error {
			return native.GenTokenizerLoadWith(path, o, out)
		})
	}); err != nil {
		return nil, err
	}
	return t, nil
}

// EncodeFlags say how text is encoded.
type EncodeFlags uint32

// Flags of Encode.
const (
	AddBOS       EncodeFlags = 1 // put the begin-of-sequence token first, if the vocabulary wants one
	ParseSpecial EncodeFlags = 2 // turn texts of special tokens into those tokens
	Continue     EncodeFlags = 4 // the text continues text encoded before, not a special token
)

// Special is a kind of token that is no text.
type Special int32

// Special tokens.
const (
	BOS Special = 0
	EOS Special = 1
	UNK Special = 2
	PAD Special = 3
	SEP Special = 4
	EOT Special = 5 // end of turn
)

// Encode turns text into tokens.
func (t *Tokenizer) Encode(text string, flags EncodeFlags) (tokens []int32, err error) {
	err = t.with(func(address uintptr) (err error) {
		tokens, err = sized(0, func(buffer []int32, capacity int, n []int) error {
			return native.GenTokenizerEncode(address, text, uint32(flags), buffer, capacity, n)
		})
		return err
	})
	return tokens, err
}

// Decode turns tokens into text.
func (t *Tokenizer) Decode(tokens []int32) (decoded string, err error) {
	if tokens == nil {
		tokens = []int32{}
	}
	err = t.with(func(address uintptr) (err error) {
		decoded, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenTokenizerDecode(address, tokens, len(tokens), buffer, capacity, n)
		})
		return err
	})
	return decoded, err
}

// Piece is the bytes of one token, which need not be whole characters.
func (t *Tokenizer) Piece(token int32) (piece []byte, err error) {
	err = t.with(func(address uintptr) (err error) {
		piece, err = sized(1, func(buffer []byte, capacity int, n []int) error {
			return native.GenTokenizerPiece(address, token, buffer, capacity, n)
		})
		return err
	})
	return piece, err
}

// VocabSize is the number of tokens.
func (t *Tokenizer) VocabSize() int {
	return int(get(&t.object, native.GenTokenizerVocabSize))
}

// Special is the id of a special token, -1 if there is none.
func (t *Tokenizer) Special(kind Special) int32 {
	id := int32(-1)
	_ = t.with(func(address uintptr) error { id = native.GenTokenizerSpecial(address, int32(kind)); return nil })
	return id
}

// EncodeFillInMiddle makes the prompt that asks a model of code for what stands between two texts; give it to AppendTokens or
// Request.Tokens. ErrUnsupported where the vocabulary has no tokens for it.
func (t *Tokenizer) EncodeFillInMiddle(prefix, suffix string, flags EncodeFlags) (tokens []int32, err error) {
	err = t.with(func(address uintptr) (err error) {
		tokens, err = sized(0, func(buffer []int32, capacity int, n []int) error {
			return native.GenTokenizerEncodeFim(address, prefix, suffix, uint32(flags), buffer, capacity, n)
		})
		return err
	})
	return tokens, err
}
