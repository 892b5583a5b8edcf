package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	kjson "sigs.k8s.io/json"
)

var builtins = func() *runtime.Scheme {
	builtins := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(builtins))
	metav1.AddToGroupVersion(builtins, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(builtins))
	utilruntime.Must(admissionv1.AddToScheme(builtins))
	utilruntime.Must(apidiscoveryv2.AddToScheme(builtins))
	utilruntime.Must(apiextensionsv1.AddToScheme(builtins))
	utilruntime.Must(apiextensionsv1beta1.AddToScheme(builtins))
	utilruntime.Must(apiregistrationv1.AddToScheme(builtins))
	return builtins
}()

// builtin reads an object of a built-in kind as a server does, and writes it in both encodings.
func builtin(args json.RawMessage) (any, error) {
	var a struct{ Group, Version, Kind, Text string }
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	object, err := builtins.New(schema.GroupVersionKind{Group: a.Group, Version: a.Version, Kind: a.Kind})
	if err != nil {
		return nil, err
	}
	violations, err := kjson.UnmarshalStrict([]byte(a.Text), object)
	if err != nil {
		return nil, err
	}
	texts := []string{}
	for _, violation := range violations {
		texts = append(texts, violation.Error())
	}
	printed, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"json": string(printed), "violations": texts, "proto": nil}
	if _, ok := object.(runtime.ProtobufMarshaller); ok {
		var wire bytes.Buffer
		if err := protobuf.NewSerializer(builtins, builtins).Encode(object, &wire); err != nil {
			return nil, err
		}
		answer["proto"] = base64.StdEncoding.EncodeToString(wire.Bytes())
	}
	return answer, nil
}
