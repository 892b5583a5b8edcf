package main

import (
	"context"
	"encoding/json"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitionvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// definition validates a CustomResourceDefinition, new or in the place of another, after the
// defaults and the status that the server gives it.
func definition(args json.RawMessage) (any, error) {
	var a struct {
		New *apiextensionsv1.CustomResourceDefinition `json:"new"`
		Old *apiextensionsv1.CustomResourceDefinition `json:"old"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	new, err := internalDefinition(a.New)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if a.Old == nil {
		new.Status = apiextensions.CustomResourceDefinitionStatus{}
		rememberStorageVersion(new)
		return fieldErrors(definitionvalidation.ValidateCustomResourceDefinition(ctx, new)), nil
	}
	old, err := internalDefinition(a.Old)
	if err != nil {
		return nil, err
	}
	new.Status = old.Status
	rememberStorageVersion(new)
	return fieldErrors(definitionvalidation.ValidateCustomResourceDefinitionUpdate(ctx, new, old)), nil
}

func internalDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	var internal apiextensions.CustomResourceDefinition
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil)
	return &internal, err
}

func rememberStorageVersion(crd *apiextensions.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			if !apiextensions.IsStoredVersion(crd, v.Name) {
				crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
			}
			break
		}
	}
}
