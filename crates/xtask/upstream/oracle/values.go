package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utilduration "k8s.io/apimachinery/pkg/util/duration"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

type text struct {
	Text string `json:"text"`
}

func textOf(args json.RawMessage) (string, error) {
	var t text
	err := json.Unmarshal(args, &t)
	return t.Text, err
}

func quantity(args json.RawMessage) (any, error) {
	s, err := textOf(args)
	if err != nil {
		return nil, err
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return nil, err
	}
	return map[string]any{"canonical": q.String(), "value": q.Value(), "milli": q.MilliValue(), "sign": q.Sign()}, nil
}

func labelSelector(args json.RawMessage) (any, error) {
	var a struct {
		Text   string            `json:"text"`
		Labels map[string]string `json:"labels"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	s, err := labels.Parse(a.Text)
	if err != nil {
		return nil, err
	}
	return map[string]any{"canonical": s.String(), "matches": s.Matches(labels.Set(a.Labels))}, nil
}

func fieldSelector(args json.RawMessage) (any, error) {
	var a struct {
		Text   string            `json:"text"`
		Fields map[string]string `json:"fields"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	s, err := fields.ParseSelector(a.Text)
	if err != nil {
		return nil, err
	}
	return map[string]any{"canonical": s.String(), "matches": s.Matches(fields.Set(a.Fields))}, nil
}

func regularExpression(args json.RawMessage) (any, error) {
	var a struct {
		Pattern string `json:"pattern"`
		Text    string `json:"text"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(a.Pattern)
	if err != nil {
		return nil, err
	}
	return map[string]any{"matches": re.MatchString(a.Text), "found": re.FindStringIndex(a.Text)}, nil
}

func duration(args json.RawMessage) (any, error) {
	s, err := textOf(args)
	if err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return nil, err
	}
	return map[string]any{"nanos": strconv.FormatInt(int64(d), 10), "canonical": d.String()}, nil
}

func humanDuration(args json.RawMessage) (any, error) {
	var a struct {
		Seconds int64 `json:"seconds"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	return utilduration.HumanDuration(time.Duration(a.Seconds) * time.Second), nil
}

func quote(args json.RawMessage) (any, error) {
	s, err := textOf(args)
	if err != nil {
		return nil, err
	}
	return strconv.Quote(s), nil
}

// decodeJSON gives back what the server would hold and print of a custom resource.
func decodeJSON(args json.RawMessage) (any, error) {
	s, err := textOf(args)
	if err != nil {
		return nil, err
	}
	var value map[string]any
	strict, err := kjson.UnmarshalStrict([]byte(s), &value)
	if err != nil {
		return nil, err
	}
	var printed bytes.Buffer
	if err := json.NewEncoder(&printed).Encode(value); err != nil {
		return nil, err
	}
	return map[string]any{"printed": printed.String(), "strict": messages(strict)}, nil
}

func decodeYAML(args json.RawMessage) (any, error) {
	s, err := textOf(args)
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON([]byte(s))
	if err != nil {
		return nil, err
	}
	var value any
	if err := utiljson.Unmarshal(asJSON, &value); err != nil {
		return nil, err
	}
	back, err := yaml.Marshal(value)
	if err != nil {
		return nil, err
	}
	return map[string]any{"json": string(asJSON), "yaml": string(back)}, nil
}

func name(args json.RawMessage) (any, error) {
	s, err := textOf(args)
	if err != nil {
		return nil, err
	}
	rules := map[string]func(string) []string{
		"dns1123-label":     validation.IsDNS1123Label,
		"dns1123-subdomain": validation.IsDNS1123Subdomain,
		"dns1035-label":     validation.IsDNS1035Label,
		"qualified-name":    validation.IsQualifiedName,
		"label-value":       validation.IsValidLabelValue,
		"config-map-key":    validation.IsConfigMapKey,
		"env-var-name":      validation.IsEnvVarName,
		"port-name":         validation.IsValidPortName,
	}
	verdicts := map[string][]string{}
	for rule, judge := range rules {
		verdicts[rule] = judge(s)
	}
	return verdicts, nil
}

// jsonPath evaluates a printer column as the server does.
func jsonPath(args json.RawMessage) (any, error) {
	var a struct {
		Path   string `json:"path"`
		Object any    `json:"object"`
	}
	if err := utiljson.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	path := jsonpath.New("column")
	if err := path.Parse("{" + a.Path + "}"); err != nil {
		return nil, err
	}
	path.AllowMissingKeys(true)
	results, err := path.FindResults(a.Object)
	if err != nil {
		return nil, err
	}
	found := []any{}
	if len(results) > 0 {
		for _, value := range results[0] {
			found = append(found, value.Interface())
		}
	}
	var printed bytes.Buffer
	if err := path.Execute(&printed, a.Object); err != nil {
		return nil, err
	}
	return map[string]any{"found": found, "printed": printed.String()}, nil
}

func messages(errs []error) []string {
	texts := []string{}
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}
