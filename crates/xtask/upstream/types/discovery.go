package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type group struct {
	name     string
	versions []version
}

type version struct {
	name      string
	resources []apidiscoveryv2.APIResourceDiscovery
	// The resources that are stored.
	stored map[string]storage
}

// storage is the version in which a resource is stored, and the hash by which discovery tells it.
type storage struct {
	gvk  schema.GroupVersionKind
	hash string
}

// priority is how the APIService of a version ranks it. The group of APIServices has none itself.
type priority struct{ group, version int32 }

// discover reads groups, versions and resources in the order in which the server gives them. Groups
// that the server got from custom resource definitions are none of ours.
func discover(server discovery.DiscoveryInterface) []group {
	var groups []group
	for _, path := range []string{"/api", "/apis"} {
		var list apidiscoveryv2.APIGroupDiscoveryList
		request := server.RESTClient().Get().AbsPath(path).
			SetHeader("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		get(request.DoRaw, &list)
		for _, item := range list.Items {
			found := group{name: item.Name}
			for _, v := range item.Versions {
				gv := schema.GroupVersion{Group: item.Name, Version: v.Version}
				if scheme.IsVersionRegistered(gv) {
					found.versions = append(found.versions, version{v.Version, v.Resources, readStorage(server, gv)})
				}
			}
			if len(found.versions) > 0 {
				groups = append(groups, found)
			}
		}
	}
	return groups
}

// readStorage asks the older form of discovery, the only one that tells.
func readStorage(server discovery.DiscoveryInterface, gv schema.GroupVersion) map[string]storage {
	list, err := server.ServerResourcesForGroupVersion(gv.String())
	must(err)
	stored := map[string]storage{}
	for _, resource := range list.APIResources {
		if hash := resource.StorageVersionHash; hash != "" {
			stored[resource.Name] = storage{storageVersion(resource.Kind, hash), hash}
		}
	}
	return stored
}

// storageVersion finds the version whose hash the server published: it gives the hash only.
func storageVersion(kind, hash string) schema.GroupVersionKind {
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Kind != kind {
			continue
		}
		sum := sha256.Sum256([]byte(gvk.Group + "/" + gvk.Version + "/" + gvk.Kind))
		if base64.StdEncoding.EncodeToString(sum[:8]) == hash {
			return gvk
		}
	}
	log.Fatalf("no version of %s has the storage version hash %s", kind, hash)
	return schema.GroupVersionKind{}
}

func priorities(server discovery.DiscoveryInterface) map[schema.GroupVersion]priority {
	var list apiregistrationv1.APIServiceList
	get(server.RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").DoRaw, &list)
	ranks := map[schema.GroupVersion]priority{}
	for _, item := range list.Items {
		version := schema.GroupVersion{Group: item.Spec.Group, Version: item.Spec.Version}
		ranks[version] = priority{item.Spec.GroupPriorityMinimum, item.Spec.VersionPriority}
	}
	return ranks
}

func renderResources(groups []group, ranks map[schema.GroupVersion]priority) string {
	var out strings.Builder
	for _, group := range groups {
		for _, version := range group.versions {
			gv := schema.GroupVersion{Group: group.name, Version: version.name}
			fmt.Fprintf(&out, "version %s", gv)
			if rank, ok := ranks[gv]; ok {
				fmt.Fprintf(&out, " %d %d", rank.group, rank.version)
			}
			fmt.Fprintln(&out)
			for _, resource := range version.resources {
				renderResource(&out, gv, resource, version.stored)
			}
		}
	}
	return out.String()
}

func renderResource(out *strings.Builder, gv schema.GroupVersion, resource apidiscoveryv2.APIResourceDiscovery, stored map[string]storage) {
	scope := "cluster"
	if resource.Scope == apidiscoveryv2.ScopeNamespace {
		scope = "namespaced"
	}
	fmt.Fprintf(out, " %s %s %s %s %s", resource.Resource, resource.ResponseKind.Kind, resource.SingularResource,
		scope, quoteList(resource.Verbs))
	if len(resource.ShortNames) > 0 {
		fmt.Fprintf(out, " short=%s", quoteList(resource.ShortNames))
	}
	if len(resource.Categories) > 0 {
		fmt.Fprintf(out, " categories=%s", quoteList(resource.Categories))
	}
	if storage, ok := stored[resource.Resource]; ok {
		fmt.Fprintf(out, " stored=%s hash=%s", storage.gvk.GroupVersion(), storage.hash)
	}
	fmt.Fprintln(out)
	for _, sub := range resource.Subresources {
		kind := apiVersionKind(gv, sub.ResponseKind.Group, sub.ResponseKind.Version, sub.ResponseKind.Kind)
		fmt.Fprintf(out, "  %s %s %s\n", sub.Subresource, kind, quoteList(sub.Verbs))
	}
}

// apiVersionKind writes a kind of another version in full and one of this version by its name.
func apiVersionKind(home schema.GroupVersion, group, version, kind string) string {
	if (group == "" && version == "") || (home == schema.GroupVersion{Group: group, Version: version}) {
		return kind
	}
	return schema.GroupVersion{Group: group, Version: version}.String() + "/" + kind
}

func get(request func(context.Context) ([]byte, error), into any) {
	body, err := request(context.Background())
	must(err)
	must(json.Unmarshal(body, into))
}
