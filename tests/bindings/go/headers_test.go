// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"libgenerate.dev/generate"
)

// Constants of the C headers, as Go has them; a header with another one, or another number, fails.
var constants = map[string]int64{
	"GEN_OK": int64(generate.CodeOK), "GEN_ERROR_INVALID_ARGUMENT": int64(generate.CodeInvalidArgument),
	"GEN_ERROR_OUT_OF_MEMORY": int64(generate.CodeOutOfMemory), "GEN_ERROR_IO": int64(generate.CodeIO),
	"GEN_ERROR_FORMAT": int64(generate.CodeFormat), "GEN_ERROR_UNSUPPORTED": int64(generate.CodeUnsupported),
	"GEN_ERROR_CACHE_FULL": int64(generate.CodeCacheFull), "GEN_ERROR_POOL_EXHAUSTED": int64(generate.CodePoolExhausted),
	"GEN_ERROR_OUT_OF_RANGE": int64(generate.CodeOutOfRange), "GEN_ERROR_SEQUENCE": int64(generate.CodeSequence),
	"GEN_ERROR_BUSY": int64(generate.CodeBusy), "GEN_ERROR_CANCELLED": int64(generate.CodeCancelled),
	"GEN_ERROR_GRAMMAR": int64(generate.CodeGrammar), "GEN_ERROR_DEVICE": int64(generate.CodeDevice),
	"GEN_ERROR_CONTEXT_FULL": int64(generate.CodeContextFull), "GEN_ERROR_STATE": int64(generate.CodeState),
	"GEN_ERROR_MODEL": int64(generate.CodeModel), "GEN_ERROR_TOKENIZER": int64(generate.CodeTokenizer),
	"GEN_ERROR_INTERNAL": int64(generate.CodeInternal),

	"GEN_FINISH_NONE": int64(generate.FinishNone), "GEN_FINISH_STOP_TOKEN": int64(generate.FinishStopToken),
	"GEN_FINISH_STOP_STRING": int64(generate.FinishStopString), "GEN_FINISH_LENGTH": int64(generate.FinishLength),
	"GEN_FINISH_CONTEXT_FULL": int64(generate.FinishContextFull), "GEN_FINISH_GRAMMAR_COMPLETE": int64(generate.FinishGrammarComplete),
	"GEN_FINISH_GRAMMAR_DEAD_END": int64(generate.FinishGrammarDeadEnd), "GEN_FINISH_CANCELLED": int64(generate.FinishCancelled),
	"GEN_PIECE_TEXT": int64(generate.PieceText), "GEN_PIECE_REASONING": int64(generate.PieceReasoning),
	"GEN_PIECE_CALL_NAME": int64(generate.PieceCallName), "GEN_PIECE_ARGUMENTS": int64(generate.PieceArguments),
	"GEN_PIECE_CALL_END": int64(generate.PieceCallEnd), "GEN_PIECE_CALL_BROKEN": int64(generate.PieceCallBroken),
	"GEN_FINISH_CALLBACK": int64(generate.FinishCallback), "GEN_FINISH_ERROR": int64(generate.FinishError),

	"GEN_AGENT_TEXT": int64(generate.AgentText), "GEN_AGENT_REASONING": int64(generate.AgentReasoning),
	"GEN_AGENT_CALL_NAME": int64(generate.AgentCallName), "GEN_AGENT_ARGUMENTS": int64(generate.AgentArguments),
	"GEN_AGENT_CALL_END": int64(generate.AgentCallEnd), "GEN_AGENT_CALL_BROKEN": int64(generate.AgentCallBroken),
	"GEN_AGENT_STEP_BEGAN": int64(generate.AgentStepBegan), "GEN_AGENT_TOOL_BEGAN": int64(generate.AgentToolBegan),
	"GEN_AGENT_TOOL_ENDED": int64(generate.AgentToolEnded), "GEN_AGENT_STEP_ENDED": int64(generate.AgentStepEnded),

	"GEN_LOG_OFF": int64(generate.LogOff), "GEN_LOG_ERROR": int64(generate.LogError), "GEN_LOG_WARNING": int64(generate.LogWarning),
	"GEN_LOG_INFO": int64(generate.LogInfo), "GEN_LOG_DEBUG": int64(generate.LogDebug),
	"GEN_ENCODE_ADD_BOS": int64(generate.AddBOS), "GEN_ENCODE_PARSE_SPECIAL": int64(generate.ParseSpecial),
	"GEN_ENCODE_CONTINUE": int64(generate.Continue),
	"GEN_SPECIAL_BOS":     int64(generate.BOS), "GEN_SPECIAL_EOS": int64(generate.EOS), "GEN_SPECIAL_UNK": int64(generate.UNK),
	"GEN_SPECIAL_PAD": int64(generate.PAD), "GEN_SPECIAL_SEP": int64(generate.SEP), "GEN_SPECIAL_EOT": int64(generate.EOT),
	"GEN_STREAM_PENDING": int64(generate.StreamPending), "GEN_STREAM_TOKEN": int64(generate.StreamToken), "GEN_STREAM_END": int64(generate.StreamEnd),
	"GEN_GPU_COPY_TO_DEVICE": generate.GPUCopyToDevice, "GEN_GPU_COPY_TO_HOST": generate.GPUCopyToHost,
	"GEN_GPU_COPY_ON_DEVICE": generate.GPUCopyOnDevice,
	"KV_CACHE_TYPE_F32":      int64(generate.TypeF32), "KV_CACHE_TYPE_F16": int64(generate.TypeF16),
	"KV_CACHE_CAN_TRUNCATE": int64(generate.CanTruncate), "KV_CACHE_CAN_CLONE": int64(generate.CanClone),
	"KV_CACHE_CAN_VIEW": int64(generate.CanView), "KV_CACHE_ONE_ROW_ONE_RESULT": int64(generate.OneRowOneResult),
	"KV_CACHE_HAS_FULL_BUFFER": int64(generate.HasFullBuffer),
	"KV_CACHE_TIER_HOT":        int64(generate.TierHot), "KV_CACHE_TIER_WARM": int64(generate.TierWarm), "KV_CACHE_TIER_COLD": int64(generate.TierCold),
}

func TestConstantsAreThoseOfC(t *testing.T) {
	constant := regexp.MustCompile(`\b((?:GEN|KV_CACHE)_[A-Z0-9_]+) = (-?\d+)(?: << (\d+))?`)
	seen := 0
	for _, path := range must(filepath.Glob(source("include/generate/*.h"))) {
		for _, found := range constant.FindAllStringSubmatch(string(must(os.ReadFile(path))), -1) {
			want := must(strconv.ParseInt(found[2], 10, 64))
			if found[3] != "" {
				want <<= must(strconv.Atoi(found[3]))
			}
			if got, there := constants[found[1]]; !there || got != want {
				t.Errorf("%s of %s is %d; in Go %d, %v", found[1], filepath.Base(path), want, got, there)
			}
			seen++
		}
	}
	equal(t, "constants", seen, len(constants))
}

// What Go's own functions need not call.
var unused = map[string]string{
	"GenGenerateStream":            "Stream pulls",
	"GenSessionGenerateStream":     "Stream pulls",
	"GenBatchGenerateStream":       "BatchStream pulls",
	"GenChatSessionSendStream":     "ChatSession.Stream pulls",
	"GenSpeculativeGenerateStream": "a Generator WithSpeculativeDraft",
	"GenEagleGenerateStream":       "a Generator WithEagle",
	"GenResultUserCode":            "only callbacks give one",
	"GenCancelReset":               "each call has a flag of its own",
	"GenGrammarOptionsSetCancel":   "making a grammar is not cancelled from Go",
	"GenForwardAttention":          "for forward functions, which are in C",
	"GenForwardCancelled":          "for forward functions, which are in C",
	"KvCacheGpuNew":                "KvCacheGpuNewTyped of fp32",
}

func TestEveryFunctionOfCIsUsed(t *testing.T) {
	module := os.Getenv("GENERATE_MODULE")
	var written strings.Builder
	for _, path := range must(filepath.Glob(filepath.Join(module, "*.go"))) {
		written.Write(must(os.ReadFile(path)))
	}
	generated := string(must(os.ReadFile(filepath.Join(module, "internal/native/generate_native.go"))))
	n := 0
	for _, found := range regexp.MustCompile(`(?m)^func ((?:Gen|Kv)\w+)\(`).FindAllStringSubmatch(generated, -1) {
		n++
		used := regexp.MustCompile(`native\.` + found[1] + `\b`).MatchString(written.String())
		if _, may := unused[found[1]]; used == may {
			t.Errorf("%s is used: %v", found[1], used)
		}
	}
	if n < 250 {
		t.Errorf("%d functions", n)
	}
}
