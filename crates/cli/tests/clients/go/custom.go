package main

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	toolswatch "k8s.io/client-go/tools/watch"
)

var boats = schema.GroupVersionResource{Group: "golang.example.com", Version: "v1", Resource: "boats"}

type object = map[string]any

func boat(name string, oars int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "golang.example.com/v1",
		"kind":       "Boat",
		"metadata":   object{"name": name, "labels": object{"of": "us"}},
		"spec":       object{"oars": oars},
	}}
}

// Defines a kind of our own, and waits until it is there.
func define(ctx context.Context, c clients) {
	crds := apiextensions.NewForConfigOrDie(c.config).ApiextensionsV1().CustomResourceDefinitions()
	zero := 0.0
	count := apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: &zero}
	counts := apiextensionsv1.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"oars": count},
	}
	crd, err := crds.Create(ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.golang.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "golang.example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Kind: "Boat"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": counts, "status": counts},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale: &apiextensionsv1.CustomResourceSubresourceScale{
						SpecReplicasPath: ".spec.oars", StatusReplicasPath: ".status.oars",
					},
				},
			}},
		},
	}, metav1.CreateOptions{})
	check(err)
	selector := fields.OneTermEqualSelector("metadata.name", crd.Name).String()
	source, err := crds.Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: crd.ResourceVersion})
	check(err)
	_, err = toolswatch.UntilWithoutRetry(ctx, source, func(event watch.Event) (bool, error) {
		for _, condition := range event.Object.(*apiextensionsv1.CustomResourceDefinition).Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	check(err)
	tell("defined", crd.Name)
}

// Its objects, through clients that know no types.
func customObjects(ctx context.Context, c clients) {
	api := c.dynamic.Resource(boats).Namespace(namespace)
	made, err := api.Create(ctx, boat("one", 2), metav1.CreateOptions{})
	check(err)
	tell("custom", made.Object["spec"], made.GetGeneration())
	_, err = api.Create(ctx, boat("bad", -1), metav1.CreateOptions{})
	tell("custom", reason(err))
	made.Object["status"] = object{"oars": int64(1)}
	made, err = api.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	check(err)
	tell("custom", made.Object["status"], made.GetGeneration())
	made, err = api.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"oars":3}}`), metav1.PatchOptions{})
	check(err)
	tell("custom", made.Object["spec"], made.GetGeneration())
	_, err = api.Apply(ctx, "one", boat("one", 4), metav1.ApplyOptions{FieldManager: "golang"})
	tell("custom", reason(err))
	_, err = api.Patch(ctx, "one", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	tell("custom", reason(err))

	cached := memory.NewMemCacheClient(c.typed.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	kinds := scale.NewDiscoveryScaleKindResolver(cached)
	scales, err := scale.NewForConfig(c.config, mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	check(err)
	current, err := scales.Scales(namespace).Get(ctx, boats.GroupResource(), "one", metav1.GetOptions{})
	check(err)
	current.Spec.Replicas = 5
	current, err = scales.Scales(namespace).Update(ctx, boats.GroupResource(), current, metav1.UpdateOptions{})
	check(err)
	tell("scaled", current.Spec.Replicas, current.Status.Replicas)

	// Metadata alone, in protobuf where there is any.
	partial := c.metadata.Resource(boats).Namespace(namespace)
	seen, err := partial.Patch(ctx, "one", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"seen":"yes"}}}`), metav1.PatchOptions{})
	check(err)
	list, err := partial.List(ctx, metav1.ListOptions{})
	check(err)
	tell("metadata", seen.Annotations, len(list.Items))
	check(partial.Delete(ctx, "one", metav1.DeleteOptions{}))
	_, err = partial.Get(ctx, "one", metav1.GetOptions{})
	tell("metadata", reason(err))
}
