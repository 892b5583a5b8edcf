package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

// Objects of built-in kinds, in protobuf there and back.
func objects(ctx context.Context, c clients) {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"of": "us"}},
		Data:       map[string]string{"k": "1"},
		BinaryData: map[string][]byte{"b": {0, 255}},
	}, metav1.CreateOptions{})
	check(err)
	tell("created", made.Name, made.Data, made.BinaryData, made.ResourceVersion != "")
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	tell("again", reason(err))
	stale := made.DeepCopy()
	made.Data["k"] = "2"
	made, err = maps.Update(ctx, made, metav1.UpdateOptions{})
	check(err)
	tell("updated", made.Data)
	stale.Data["k"] = "3"
	_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
	tell("stale", reason(err))
	check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh, err := maps.Get(ctx, "a", metav1.GetOptions{})
		check(err)
		fresh.Data["k"] = "3"
		made, err = maps.Update(ctx, fresh, metav1.UpdateOptions{})
		return err
	}))
	tell("retried", made.Data)
	made, err = maps.Patch(ctx, "a", types.StrategicMergePatchType,
		[]byte(`{"data":{"m":"4"}}`), metav1.PatchOptions{})
	check(err)
	tell("patched", made.Data)
	made, err = maps.Patch(ctx, "a", types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/data/m"}]`), metav1.PatchOptions{})
	check(err)
	tell("patched", made.Data)
	wish := applycorev1.ConfigMap("a", namespace).WithData(map[string]string{"k": "5"})
	_, err = maps.Apply(ctx, wish, metav1.ApplyOptions{FieldManager: "golang"})
	tell("conflict", reason(err))
	made, err = maps.Apply(ctx, wish, metav1.ApplyOptions{FieldManager: "golang", Force: true})
	check(err)
	mine, err := applycorev1.ExtractConfigMap(made, "golang")
	check(err)
	tell("applied", made.Data, mine.Data)
	_, err = maps.Get(ctx, "absent", metav1.GetOptions{})
	tell("absent", reason(err), err)

	for _, name := range []string{"b", "c", "d"} {
		_, err = maps.Apply(ctx, applycorev1.ConfigMap(name, namespace).
			WithLabels(map[string]string{"of": "us"}), metav1.ApplyOptions{FieldManager: "golang"})
		check(err)
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := maps.List(ctx, options)
		if err == nil {
			tell("page", len(list.Items), list.Continue != "")
		}
		return list, err
	})
	pages.PageSize = 3
	check(pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: "of=us"},
		func(runtime.Object) error { return nil }))
	watching, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "of=us", ResourceVersion: made.ResourceVersion})
	check(err)
	uid := types.UID("another")
	err = maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	tell("another", reason(err))
	check(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "of=us"}))
	deleted := 0
	for event := range watching.ResultChan() {
		if event.Type == watch.Deleted {
			deleted++
		}
		if deleted == 4 {
			break
		}
	}
	watching.Stop()
	tell("deleted", deleted)
}

// What is more than an object: scales, tokens, evictions, reviews, events, discovery.
func calls(ctx context.Context, c clients) {
	labels := map[string]string{"app": "web"}
	container := corev1.Container{Name: "c", Image: "nginx"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
	}
	deployments := c.typed.AppsV1().Deployments(namespace)
	web, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	check(err)
	tell("deployment", *web.Spec.Replicas, web.Spec.Strategy.RollingUpdate.MaxSurge)
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	check(err)
	scale.Spec.Replicas = 3
	scale, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
	check(err)
	web, err = deployments.Get(ctx, "web", metav1.GetOptions{})
	check(err)
	web.Status.ObservedGeneration = web.Generation
	web, err = deployments.UpdateStatus(ctx, web, metav1.UpdateOptions{})
	check(err)
	tell("scaled", scale.Spec.Replicas, scale.Status.Selector, web.Generation, web.Status.ObservedGeneration)
	foreground := metav1.DeletePropagationForeground
	check(deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground}))

	accounts := c.typed.CoreV1().ServiceAccounts(namespace)
	_, err = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	check(err)
	seconds := int64(600)
	token, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	check(err)
	review, err := c.typed.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}, metav1.CreateOptions{})
	check(err)
	tell("token", review.Status.User.Username)
	access, err := c.typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               review.Status.User.Username,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"},
		},
	}, metav1.CreateOptions{})
	check(err)
	tell("allowed", access.Status.Allowed)

	pods := c.typed.CoreV1().Pods(namespace)
	_, err = pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{ServiceAccountName: "robot", Containers: template.Spec.Containers},
	}, metav1.CreateOptions{})
	check(err)
	check(pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p"}}))
	_, err = pods.Get(ctx, "p", metav1.GetOptions{})
	tell("evicted", reason(err))
	_, err = pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}, metav1.CreateOptions{})
	tell("invalid", reason(err), err)

	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&eventSink{ctx, c.typed.CoreV1().Events(namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "golang"})
	account, err := accounts.Get(ctx, "robot", metav1.GetOptions{})
	check(err)
	watching, err := c.typed.CoreV1().Events(namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.name=robot",
	})
	check(err)
	for range 2 {
		recorder.Event(account, corev1.EventTypeNormal, "Tested", "as wished")
	}
	for event := range watching.ResultChan() {
		seen := event.Object.(*corev1.Event)
		tell("event", event.Type, seen.Reason, seen.Count)
		if seen.Count == 2 {
			break
		}
	}
	watching.Stop()
	broadcaster.Shutdown()

	found, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.typed.Discovery())).
		KindFor(appsv1.Resource("deployments").WithVersion(""))
	check(err)
	groups, resources, err := c.typed.Discovery().ServerGroupsAndResources()
	check(err)
	tell("discovered", found, len(groups) > 15, len(resources) > 15)
	version, err := c.typed.Discovery().ServerVersion()
	check(err)
	tell("version", version.Major, version.Minor)
}
