package main

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

type patchArgs struct {
	Object json.RawMessage `json:"object"`
	Patch  json.RawMessage `json:"patch"`
	// What a patch is to be made of; the object is the original.
	Modified  json.RawMessage `json:"modified"`
	Current   json.RawMessage `json:"current"`
	Overwrite bool            `json:"overwrite"`
	// Group, version and kind, for strategic merge patches.
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

func patchOf(args json.RawMessage) (patchArgs, error) {
	var a patchArgs
	err := json.Unmarshal(args, &a)
	return a, err
}

func jsonPatch(args json.RawMessage) (any, error) {
	a, err := patchOf(args)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(a.Patch)
	if err != nil {
		return nil, err
	}
	patched, err := patch.Apply(a.Object)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(patched), nil
}

func mergePatch(args json.RawMessage) (any, error) {
	a, err := patchOf(args)
	if err != nil {
		return nil, err
	}
	patched, err := jsonpatch.MergePatch(a.Object, a.Patch)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(patched), nil
}

func (a patchArgs) meta() (strategicpatch.LookupPatchMeta, error) {
	prototype, err := scheme.Scheme.New(schema.GroupVersionKind{Group: a.Group, Version: a.Version, Kind: a.Kind})
	if err != nil {
		return nil, err
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(prototype)
	if err != nil {
		return nil, fmt.Errorf("no patch metadata: %w", err)
	}
	return meta, nil
}

func twoWayPatch(args json.RawMessage) (any, error) {
	a, err := patchOf(args)
	if err != nil {
		return nil, err
	}
	meta, err := a.meta()
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatchUsingLookupPatchMeta(a.Object, a.Modified, meta)
	return json.RawMessage(patch), err
}

func threeWayPatch(args json.RawMessage) (any, error) {
	a, err := patchOf(args)
	if err != nil {
		return nil, err
	}
	meta, err := a.meta()
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(a.Object, a.Modified, a.Current, meta, a.Overwrite)
	return json.RawMessage(patch), err
}

func strategicPatch(args json.RawMessage) (any, error) {
	a, err := patchOf(args)
	if err != nil {
		return nil, err
	}
	meta, err := a.meta()
	if err != nil {
		return nil, err
	}
	var object, patch map[string]any
	if err := utiljson.Unmarshal(a.Object, &object); err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(a.Patch, &patch); err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object, patch, meta)
}
