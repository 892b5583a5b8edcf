package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
)

// Told what an informer tells: which change, and of what.
func changes() (cache.ResourceEventHandlerFuncs, <-chan string) {
	told := make(chan string, 100)
	say := func(change string, object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		metadata, err := meta.Accessor(object)
		check(err)
		told <- fmt.Sprintf("%s %s", change, metadata.GetName())
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { say("add", object) },
		UpdateFunc: func(_, object any) { say("update", object) },
		DeleteFunc: func(object any) { say("delete", object) },
	}, told
}

func apply(ctx context.Context, c clients, name, value string) {
	wish := applycorev1.ConfigMap(name, namespace).
		WithLabels(map[string]string{"team": value}).
		WithData(map[string]string{"k": value})
	_, err := c.typed.CoreV1().ConfigMaps(namespace).
		Apply(ctx, wish, metav1.ApplyOptions{FieldManager: "golang", Force: true})
	check(err)
}

// Caches of typed objects, with an index and a lister.
func typedInformers(ctx context.Context, c clients) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	apply(ctx, c, "one", "red")
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "team" }))
	maps := factory.Core().V1().ConfigMaps()
	check(maps.Informer().AddIndexers(cache.Indexers{"team": func(object any) ([]string, error) {
		return []string{object.(*corev1.ConfigMap).Labels["team"]}, nil
	}}))
	handler, told := changes()
	registration, err := maps.Informer().AddEventHandler(handler)
	check(err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), registration.HasSynced)
	tell("informed", <-told)
	apply(ctx, c, "two", "red")
	tell("informed", <-told)
	apply(ctx, c, "two", "blue")
	tell("informed", <-told)
	red, err := maps.Informer().GetIndexer().ByIndex("team", "red")
	check(err)
	all, err := maps.Lister().ConfigMaps(namespace).List(labels.Everything())
	check(err)
	two, err := maps.Lister().ConfigMaps(namespace).Get("two")
	check(err)
	tell("cached", len(red), names(all), two.Data)
	check(c.typed.CoreV1().ConfigMaps(namespace).Delete(ctx, "two", metav1.DeleteOptions{}))
	tell("informed", <-told)
	// Who leaves the selection is gone to whoever watches it.
	_, err = c.typed.CoreV1().ConfigMaps(namespace).Patch(ctx, "one", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"team":null}}}`), metav1.PatchOptions{})
	check(err)
	tell("informed", <-told)
	stop()
	factory.Shutdown()
}

// Caches without types: of our own kind, and of metadata alone.
func otherInformers(ctx context.Context, c clients) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	whole := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, namespace, nil)
	parts := metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, namespace, nil)
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	var told []<-chan string
	for _, informer := range []cache.SharedIndexInformer{
		whole.ForResource(boats).Informer(),
		parts.ForResource(boats).Informer(),
		parts.ForResource(secrets).Informer(),
	} {
		handler, changes := changes()
		_, err := informer.AddEventHandler(handler)
		check(err)
		told = append(told, changes)
	}
	whole.Start(ctx.Done())
	parts.Start(ctx.Done())
	whole.WaitForCacheSync(ctx.Done())
	parts.WaitForCacheSync(ctx.Done())
	api := c.dynamic.Resource(boats).Namespace(namespace)
	_, err := api.Apply(ctx, "two", boat("two", 2), metav1.ApplyOptions{FieldManager: "golang"})
	check(err)
	tell("informed", <-told[0], <-told[1])
	_, err = api.Apply(ctx, "two", boat("two", 3), metav1.ApplyOptions{FieldManager: "golang"})
	check(err)
	tell("informed", <-told[0], <-told[1])
	check(api.Delete(ctx, "two", metav1.DeleteOptions{}))
	tell("informed", <-told[0], <-told[1])
	_, err = c.typed.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": "v"},
	}, metav1.CreateOptions{})
	check(err)
	tell("informed", <-told[2])
	stop()
	whole.Shutdown()
	parts.Shutdown()
}

// An operator as they are written without a framework: an informer fills a queue with keys, a
// worker brings each to what its object wants, and follows deletion by a finalizer.
func operator(ctx context.Context, c clients) {
	ctx, stop := context.WithCancel(ctx)
	const finalizer = "golang.example.com/berth"
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, namespace, nil)
	informer := factory.ForResource(boats)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	enqueue := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		check(err)
		queue.Add(key)
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	})
	check(err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	api := c.dynamic.Resource(boats).Namespace(namespace)
	reconcile := func(name string) error {
		boat, err := api.Get(ctx, name, metav1.GetOptions{})
		if reason(err) == metav1.StatusReasonNotFound {
			return nil
		} else if err != nil {
			return err
		}
		switch {
		case boat.GetDeletionTimestamp() != nil:
			err = maps.Delete(ctx, "berth", metav1.DeleteOptions{})
			if err != nil && reason(err) != metav1.StatusReasonNotFound {
				return err
			}
			boat.SetFinalizers(nil)
			_, err = api.Update(ctx, boat, metav1.UpdateOptions{})
		case len(boat.GetFinalizers()) == 0:
			boat.SetFinalizers([]string{finalizer})
			_, err = api.Update(ctx, boat, metav1.UpdateOptions{})
		default:
			oars := boat.Object["spec"].(object)["oars"]
			wish := applycorev1.ConfigMap("berth", namespace).
				WithData(map[string]string{"oars": fmt.Sprint(oars)})
			_, err = maps.Apply(ctx, wish, metav1.ApplyOptions{FieldManager: "operator", Force: true})
			check(err)
			boat.Object["status"] = object{"oars": oars}
			_, err = api.UpdateStatus(ctx, boat, metav1.UpdateOptions{})
		}
		return err
	}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for {
				key, done := queue.Get()
				if done {
					return
				}
				_, name, err := cache.SplitMetaNamespaceKey(key)
				check(err)
				if reconcile(name) != nil {
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		})
	}
	berths, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=berth"})
	check(err)
	next := func() {
		event := <-berths.ResultChan()
		tell("berth", event.Type, event.Object.(*corev1.ConfigMap).Data)
	}
	_, err = api.Create(ctx, boat("three", 2), metav1.CreateOptions{})
	check(err)
	next()
	_, err = api.Patch(ctx, "three", types.MergePatchType, []byte(`{"spec":{"oars":6}}`), metav1.PatchOptions{})
	check(err)
	next()
	check(api.Delete(ctx, "three", metav1.DeleteOptions{}))
	next()
	gone, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=three"})
	check(err)
	if _, err = api.Get(ctx, "three", metav1.GetOptions{}); err == nil {
		for event := range gone.ResultChan() {
			if event.Type == "DELETED" {
				break
			}
		}
	}
	_, err = api.Get(ctx, "three", metav1.GetOptions{})
	tell("boat", reason(err))
	queue.ShutDown()
	workers.Wait()
	stop()
	factory.Shutdown()
}

// Two candidates for one lease: the second leads once the first lets go.
func leaders(ctx context.Context, c clients) {
	leads := make(chan string, 10)
	campaign := func(ctx context.Context, name string) <-chan struct{} {
		ended := make(chan struct{})
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: namespace},
			Client:     c.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		go func() {
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock:            lock,
				ReleaseOnCancel: true,
				LeaseDuration:   3 * time.Second,
				RenewDeadline:   2 * time.Second,
				RetryPeriod:     100 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { leads <- name },
					OnStoppedLeading: func() {},
				},
			})
			close(ended)
		}()
		return ended
	}
	first, resign := context.WithCancel(ctx)
	firstEnded := campaign(first, "first")
	tell("leads", <-leads)
	second, end := context.WithCancel(ctx)
	secondEnded := campaign(second, "second")
	resign()
	<-firstEnded
	tell("leads", <-leads)
	lease, err := c.typed.CoordinationV1().Leases(namespace).Get(ctx, "leader", metav1.GetOptions{})
	check(err)
	tell("lease", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
	end()
	<-secondEnded
}

// Writes events; client-go asks for this without contexts.
type eventSink struct {
	ctx    context.Context
	events typedcorev1.EventInterface
}

func (s *eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.events.Create(s.ctx, event, metav1.CreateOptions{})
}

func (s *eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.events.Update(s.ctx, event, metav1.UpdateOptions{})
}

func (s *eventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.events.Patch(s.ctx, event.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
}
