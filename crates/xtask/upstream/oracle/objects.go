package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// structural prunes, defaults and validates an object by a schema, as the server does for a
// custom resource between decoding and storing.
func structural(args json.RawMessage) (any, error) {
	var a struct {
		Schema apiextensionsv1.JSONSchemaProps `json:"schema"`
		Object json.RawMessage                 `json:"object"`
		Old    json.RawMessage                 `json:"old"`
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
		return nil, fmt.Errorf("structural: %w", err)
	}
	if errs := structuralschema.ValidateStructural(nil, s); len(errs) > 0 {
		return map[string]any{"refused": fieldErrors(errs)}, nil
	}
	if err := defaulting.PruneDefaults(s); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, fmt.Errorf("validator: %w", err)
	}

	var object map[string]any
	if err := utiljson.Unmarshal(a.Object, &object); err != nil {
		return nil, err
	}
	pruned := pruning.PruneWithOptions(object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
	defaulting.Default(object, s)

	lists := listtype.ValidateListSetsAndMaps(nil, s, object)
	var errs field.ErrorList
	if len(a.Old) == 0 || string(a.Old) == "null" {
		errs = validation.ValidateCustomResource(nil, object, validator)
	} else {
		var old map[string]any
		if err := utiljson.Unmarshal(a.Old, &old); err != nil {
			return nil, err
		}
		correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: s})
		errs = validation.ValidateCustomResourceUpdate(nil, object, old, validator, validation.WithRatcheting(correlated))
		if len(listtype.ValidateListSetsAndMaps(nil, s, old)) > 0 {
			lists = nil
		}
	}
	errs = append(errs, objectmeta.Validate(nil, object, s, false)...)
	errs = append(errs, lists...)
	return map[string]any{"object": object, "pruned": pruned, "errors": fieldErrors(errs)}, nil
}

func fieldErrors(errs field.ErrorList) []map[string]string {
	list := []map[string]string{}
	for _, err := range errs {
		list = append(list, map[string]string{"field": err.Field, "reason": string(err.Type), "body": err.ErrorBody()})
	}
	return list
}

type applyStep struct {
	Manager   string         `json:"manager"`
	Operation string         `json:"operation"`
	Force     bool           `json:"force"`
	Object    map[string]any `json:"object"`
}

// apply plays a sequence of applies and updates on one object, and answers what it is, or why
// not, after each.
func apply(args json.RawMessage) (any, error) {
	var a struct {
		// An OpenAPI schema; absent, it is deduced from each object.
		Schema  json.RawMessage `json:"schema"`
		Group   string          `json:"group"`
		Version string          `json:"version"`
		Kind    string          `json:"kind"`
		Steps   []applyStep     `json:"steps"`
	}
	// Numbers must be whole where they are written so.
	if err := utiljson.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	gvk := schema.GroupVersionKind{Group: a.Group, Version: a.Version, Kind: a.Kind}
	converter, err := typeConverter(a.Schema, gvk)
	if err != nil {
		return nil, err
	}
	manager := managedfieldstest.NewFakeFieldManager(converter, gvk)
	live := empty(gvk)
	answers := []map[string]any{}
	for _, step := range a.Steps {
		object := &unstructured.Unstructured{Object: step.Object}
		object.SetGroupVersionKind(gvk)
		var next any
		var err error
		if step.Operation == "Apply" {
			next, err = manager.Apply(live.DeepCopy(), object, step.Manager, step.Force)
		} else {
			next, err = manager.Update(live.DeepCopy(), object, step.Manager)
		}
		if err != nil {
			answers = append(answers, map[string]any{"err": err.Error()})
			continue
		}
		live = next.(*unstructured.Unstructured)
		answers = append(answers, map[string]any{"ok": withoutTimes(live)})
	}
	return answers, nil
}

func typeConverter(raw json.RawMessage, gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return managedfields.NewDeducedTypeConverter(), nil
	}
	var root spec.Schema
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	root.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
	})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"root": &root}, false)
}

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvk)
	return object
}

func withoutTimes(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	entries := object.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	object.SetManagedFields(entries)
	return object.Object
}
