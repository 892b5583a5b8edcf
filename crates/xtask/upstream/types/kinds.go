package main

import (
	"reflect"
	"sort"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationv1beta1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
)

// kind is one row of the table's index: a name on the wire and the Go type behind it.
type kind struct {
	schema.GroupVersionKind
	goType reflect.Type
}

const metaPackage = "k8s.io/apimachinery/pkg/apis/meta/v1"

// scheme holds every kind of every version, served or not.
var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	utilruntime.Must(admissionv1.AddToScheme(scheme))
	utilruntime.Must(apidiscoveryv2.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1beta1.AddToScheme(scheme))
	utilruntime.Must(apiregistrationv1.AddToScheme(scheme))
	utilruntime.Must(apiregistrationv1beta1.AddToScheme(scheme))
	return scheme
}()

// unlisted are the versions that are spoken but never found by discovery.
var unlisted = []schema.GroupVersion{
	admissionv1.SchemeGroupVersion,
	apidiscoveryv2.SchemeGroupVersion,
	{Group: "meta.k8s.io", Version: "v1"},
}

// selectKinds gives every kind of the served versions, and those that are stored in another version. Kinds of the meta package are registered
// in each of them; they appear once, under their own groups.
func selectKinds(groups []group) []kind {
	versions := append([]schema.GroupVersion{}, unlisted...)
	for _, group := range groups {
		for _, version := range group.versions {
			versions = append(versions, schema.GroupVersion{Group: group.name, Version: version.name})
		}
	}
	var kinds []kind
	for _, version := range versions {
		home := version == schema.GroupVersion{Version: "v1"} || version.Group == "meta.k8s.io"
		for name, goType := range scheme.KnownTypes(version) {
			if !home && goType.PkgPath() == metaPackage || strings.HasPrefix(name, "__") {
				continue
			}
			// Registered for conversion only: an alias of WatchEvent that is never on the wire.
			if goType == reflect.TypeFor[metav1.InternalEvent]() {
				continue
			}
			kinds = append(kinds, kind{version.WithKind(name), goType})
		}
	}
	kinds = append(kinds, storedKinds(groups)...)
	sort.Slice(kinds, func(i, j int) bool { return less(kinds[i], kinds[j]) })
	return kinds
}

// storedKinds gives the kinds that are written to the store in a version that is not served.
func storedKinds(groups []group) []kind {
	var kinds []kind
	for _, group := range groups {
		served := map[string]bool{}
		for _, version := range group.versions {
			served[version.name] = true
		}
		for _, version := range group.versions {
			for _, resource := range version.resources {
				stored, ok := version.stored[resource.Resource]
				if ok && stored.gvk.Group == group.name && !served[stored.gvk.Version] {
					kinds = append(kinds, kind{stored.gvk, scheme.AllKnownTypes()[stored.gvk]})
				}
			}
		}
	}
	return kinds
}

func less(a, b kind) bool {
	if a.Group != b.Group {
		return a.Group < b.Group
	}
	if a.Version != b.Version {
		return a.Version < b.Version
	}
	return a.Kind < b.Kind
}
