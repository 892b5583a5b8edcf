// Command oracle answers questions with upstream's own libraries, one JSON line per question.
//
// It is how random input is judged: an API server takes milliseconds for a question, this takes
// microseconds. A line holds an operation and its arguments; the answer holds `ok` or `err`.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type operation func(args json.RawMessage) (any, error)

var operations = map[string]operation{
	"apply":           apply,
	"builtin":         builtin,
	"definition":      definition,
	"duration":        duration,
	"field-selector":  fieldSelector,
	"human-duration":  humanDuration,
	"json":            decodeJSON,
	"json-patch":      jsonPatch,
	"jsonpath":        jsonPath,
	"label-selector":  labelSelector,
	"merge-patch":     mergePatch,
	"name":            name,
	"quantity":        quantity,
	"quote":           quote,
	"regexp":          regularExpression,
	"rule":            rule,
	"strategic-patch": strategicPatch,
	"structural":      structural,
	"three-way-patch": threeWayPatch,
	"two-way-patch":   twoWayPatch,
	"yaml":            decodeYAML,
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		answer, err := json.Marshal(ask(lines.Bytes()))
		if err != nil {
			answer, _ = json.Marshal(map[string]any{"bug": err.Error()})
		}
		out.Write(answer)
		out.WriteByte('\n')
		// The asker waits for each answer.
		out.Flush()
	}
}

func ask(line []byte) (answer map[string]any) {
	defer func() {
		if panicked := recover(); panicked != nil {
			answer = map[string]any{"panic": fmt.Sprint(panicked)}
		}
	}()
	var question struct {
		Op   string          `json:"op"`
		Args json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return map[string]any{"bug": err.Error()}
	}
	run, known := operations[question.Op]
	if !known {
		return map[string]any{"bug": "no operation " + question.Op}
	}
	ok, err := run(question.Args)
	if err != nil {
		return map[string]any{"err": err.Error()}
	}
	return map[string]any{"ok": ok}
}
