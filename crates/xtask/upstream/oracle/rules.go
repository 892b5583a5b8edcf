package main

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// rule compiles the rule of a schema, says what it may cost, and runs it on an object.
func rule(args json.RawMessage) (any, error) {
	var a struct {
		Schema apiextensionsv1.JSONSchemaProps `json:"schema"`
		Rule   string                          `json:"rule"`
		Object json.RawMessage                 `json:"object"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&a.Schema, &internal, nil); err != nil {
		return nil, err
	}
	s, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	s.XValidations = apiextensionsv1.ValidationRules{{Rule: a.Rule}}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	declared := model.SchemaDeclType(s, false)
	compiled, err := cel.Compile(s, declared, celconfig.PerCallLimit, base, cel.NewExpressionsEnvLoader())
	if err != nil {
		return nil, err
	}
	if compiled[0].Error != nil {
		return nil, errors.New(compiled[0].Error.Detail)
	}
	var object any
	if err := utiljson.Unmarshal(a.Object, &object); err != nil {
		return nil, err
	}
	self := cel.UnstructuredToVal(object, s)
	result, details, err := compiled[0].Program.ContextEval(context.Background(), map[string]any{"self": self})
	answer := map[string]any{"estimated": compiled[0].MaxCost, "cost": *details.ActualCost()}
	if err != nil {
		answer["failure"] = err.Error()
	} else {
		answer["holds"] = result.Value()
	}
	return answer, nil
}
