// What a user of the fabric8 client does, told in one line per step. Takes a kubeconfig.

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ConfigMapList;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinitionBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.JSONSchemaPropsBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.api.model.authorization.v1.SelfSubjectAccessReviewBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

public class Client {
    static final String NAMESPACE = "java";

    public static class BoatSpec {
        public int oars;
    }

    public static class BoatStatus {
        public boolean afloat;
    }

    @Group("java.example.com")
    @Version("v1")
    public static class Boat extends CustomResource<BoatSpec, BoatStatus> implements Namespaced {
    }

    public static void main(String[] args) throws Exception {
        Config config = Config.fromKubeconfig(new File(args[0]));
        try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
            client.resource(new NamespaceBuilder().withNewMetadata().withName(NAMESPACE).endMetadata().build()).create();
            objects(client);
            watched(client);
            files(client);
            calls(client);
            custom(client);
            informed(client);
            leaders(client);
        }
    }

    static void tell(Object... values) {
        System.out.println(Arrays.stream(values).map(String::valueOf).collect(Collectors.joining(" ")));
    }

    /** The code of a refusal. */
    static int code(Runnable call) {
        try {
            call.run();
            return 0;
        } catch (KubernetesClientException refusal) {
            return refusal.getCode();
        }
    }

    static ConfigMap map(String name, String value) {
        return new ConfigMapBuilder()
                .withNewMetadata().withName(name).withNamespace(NAMESPACE).addToLabels("of", "us").endMetadata()
                .addToData("k", value).build();
    }

    static void objects(KubernetesClient client) {
        ConfigMap made = client.resource(map("a", "1")).create();
        tell("created", made.getMetadata().getName(), made.getData());
        tell("again", code(() -> client.resource(map("a", "1")).create()));
        Resource<ConfigMap> a = client.configMaps().inNamespace(NAMESPACE).withName("a");
        tell("edited", a.edit(map -> new ConfigMapBuilder(map).addToData("k", "2").build()).getData());
        tell("stale", code(() -> client.resource(made).lockResourceVersion().update()));
        tell("patched", a.patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"m\":\"3\"}}").getData());
        tell("patched", a.patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"data\":{\"m\":null}}").getData());
        tell("patched", a.patch(PatchContext.of(PatchType.JSON),
                "[{\"op\":\"add\",\"path\":\"/data/n\",\"value\":\"4\"}]").getData());
        tell("conflict", code(() -> client.resource(map("a", "5")).fieldManager("java").serverSideApply()));
        ConfigMap forced = client.resource(map("a", "5")).fieldManager("java").forceConflicts().serverSideApply();
        tell("applied", forced.getData());
        for (String name : List.of("b", "c", "d")) {
            client.resource(map(name, "1")).create();
        }
        var selected = client.configMaps().inNamespace(NAMESPACE).withLabel("of", "us");
        ConfigMapList page = selected.list(new io.fabric8.kubernetes.api.model.ListOptionsBuilder().withLimit(3L).build());
        tell("listed", page.getItems().size(), page.getMetadata().getContinue() != null);
        tell("absent", client.configMaps().inNamespace(NAMESPACE).withName("absent").get());
        tell("dry", client.resource(map("e", "1")).dryRun(true).create().getMetadata().getName(),
                client.configMaps().inNamespace(NAMESPACE).withName("e").get());
        tell("deleted", selected.delete().size(), selected.list().getItems().size());
    }

    static void watched(KubernetesClient client) throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        var maps = client.configMaps().inNamespace(NAMESPACE).withLabel("of", "us");
        try (var watch = maps.watch(new Watcher<ConfigMap>() {
            public void eventReceived(Action action, ConfigMap map) {
                told.add(action + " " + map.getMetadata().getName() + " " + map.getData());
            }

            public void onClose(WatcherException why) {
                told.add("closed " + why);
            }
        })) {
            client.resource(map("w", "1")).create();
            client.resource(map("w", "2")).update();
            client.resource(map("w", "2")).delete();
            for (int n = 0; n < 3; n++) {
                tell("saw", next(told));
            }
        }
    }

    static String next(BlockingQueue<String> told) throws Exception {
        return told.poll(30, TimeUnit.SECONDS);
    }

    static void files(KubernetesClient client) {
        String manifest = """
                apiVersion: v1
                kind: Service
                metadata: {name: filed}
                spec: {ports: [{port: 80}]}
                ---
                apiVersion: apps/v1
                kind: Deployment
                metadata: {name: filed}
                spec:
                  selector: {matchLabels: {app: filed}}
                  template:
                    metadata: {labels: {app: filed}}
                    spec: {containers: [{name: c, image: i}]}
                """;
        var loaded = client.load(new ByteArrayInputStream(manifest.getBytes())).inNamespace(NAMESPACE);
        tell("filed", loaded.serverSideApply().stream().map(object -> object.getKind()).toList());
        Deployment scaled = client.apps().deployments().inNamespace(NAMESPACE).withName("filed").scale(3);
        tell("scaled", scaled.getSpec().getReplicas());
        var filed = client.apps().deployments().inNamespace(NAMESPACE).withName("filed");
        Deployment seen = filed.editStatus(deployment -> new DeploymentBuilder(deployment)
                .withNewStatus().withReplicas(3).withObservedGeneration(2L).endStatus().build());
        tell("status", seen.getStatus().getReplicas(), seen.getMetadata().getGeneration());
        filed.rolling().restart();
        tell("restarted", filed.get().getMetadata().getGeneration());
        loaded.delete();
        tell("gone", client.services().inNamespace(NAMESPACE).withName("filed").get());
    }

    static void calls(KubernetesClient client) {
        client.serviceAccounts().inNamespace(NAMESPACE).withName("default")
                .waitUntilCondition(account -> account != null, 30, TimeUnit.SECONDS);
        client.resource(new PodBuilder().withNewMetadata().withName("p").withNamespace(NAMESPACE).endMetadata()
                .withNewSpec().addNewContainer().withName("c").withImage("i").endContainer().endSpec().build()).create();
        tell("evicted", client.pods().inNamespace(NAMESPACE).withName("p").evict());
        tell("invalid", code(() -> client.resource(new PodBuilder().withNewMetadata().withName("bad")
                .withNamespace(NAMESPACE).endMetadata().withNewSpec().endSpec().build()).create()));
        var review = client.authorization().v1().selfSubjectAccessReview().create(new SelfSubjectAccessReviewBuilder()
                .withNewSpec().withNewResourceAttributes().withVerb("delete").withResource("nodes")
                .endResourceAttributes().endSpec().build());
        tell("allowed", review.getStatus().getAllowed());
        tell("version", client.getKubernetesVersion().getMajor(), client.getKubernetesVersion().getMinor());
        tell("supports", client.supports(Deployment.class), client.hasApiGroup("nobody.example.com", true));
    }

    static Boat boat(String name, int oars) {
        Boat boat = new Boat();
        boat.getMetadata().setName(name);
        boat.getMetadata().setNamespace(NAMESPACE);
        boat.setSpec(new BoatSpec());
        boat.getSpec().oars = oars;
        return boat;
    }

    static void custom(KubernetesClient client) {
        var whole = new JSONSchemaPropsBuilder().withType("object")
                .addToProperties("spec", new JSONSchemaPropsBuilder().withType("object")
                        .addToProperties("oars", new JSONSchemaPropsBuilder().withType("integer").withMinimum(0.0).build()).build())
                .addToProperties("status", new JSONSchemaPropsBuilder().withType("object")
                        .withXKubernetesPreserveUnknownFields(true).build()).build();
        CustomResourceDefinition crd = new CustomResourceDefinitionBuilder()
                .withNewMetadata().withName("boats.java.example.com").endMetadata()
                .withNewSpec().withGroup("java.example.com").withScope("Namespaced")
                .withNewNames().withPlural("boats").withSingular("boat").withKind("Boat").endNames()
                .addNewVersion().withName("v1").withServed(true).withStorage(true)
                .withNewSchema().withOpenAPIV3Schema(whole).endSchema()
                .withNewSubresources().withNewStatus().endStatus().endSubresources().endVersion()
                .endSpec().build();
        client.resource(crd).create();
        client.resource(crd).waitUntilCondition(defined -> defined != null && defined.getStatus() != null
                && defined.getStatus().getConditions() != null && defined.getStatus().getConditions().stream()
                .anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True")), 30, TimeUnit.SECONDS);
        Boat made = client.resource(boat("one", 2)).create();
        tell("custom", made.getSpec().oars, made.getMetadata().getGeneration());
        tell("refused", code(() -> client.resource(boat("bad", -1)).create()));
        made.setStatus(new BoatStatus());
        made.getStatus().afloat = true;
        made = client.resource(made).updateStatus();
        tell("custom", made.getStatus().afloat, made.getMetadata().getGeneration());
        MixedOperation<GenericKubernetesResource, ?, Resource<GenericKubernetesResource>> generic =
                client.genericKubernetesResources(ResourceDefinitionContext.fromResourceType(Boat.class));
        tell("generic", (Object) generic.inNamespace(NAMESPACE).withName("one").get().get("spec", "oars"));
        client.resource(made).delete();
        tell("custom", client.resources(Boat.class).inNamespace(NAMESPACE).list().getItems().size());
    }

    static void informed(KubernetesClient client) throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        client.resource(boat("before", 1)).create();
        try (SharedIndexInformer<Boat> informer = client.resources(Boat.class).inNamespace(NAMESPACE)
                .inform(new ResourceEventHandler<Boat>() {
                    public void onAdd(Boat boat) {
                        told.add("add " + boat.getMetadata().getName());
                    }

                    public void onUpdate(Boat old, Boat boat) {
                        told.add("update " + boat.getMetadata().getName() + " " + boat.getSpec().oars);
                    }

                    public void onDelete(Boat boat, boolean unknown) {
                        told.add("delete " + boat.getMetadata().getName());
                    }
                })) {
            tell("informed", next(told));
            client.resource(boat("after", 2)).create();
            tell("informed", next(told));
            client.resource(boat("after", 3)).fieldManager("java").forceConflicts().serverSideApply();
            tell("informed", next(told));
            client.resource(boat("before", 1)).delete();
            tell("informed", next(told));
            tell("cached", informer.getStore().list().stream().map(boat -> boat.getMetadata().getName()).toList());
        }
    }

    static void leaders(KubernetesClient client) throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        var first = campaign(client, "first", told);
        tell("leads", next(told));
        var second = campaign(client, "second", told);
        first.cancel(true);
        tell("leads", next(told));
        second.cancel(true);
    }

    static java.util.concurrent.CompletableFuture<?> campaign(KubernetesClient client, String name, BlockingQueue<String> told) {
        return client.leaderElector().withConfig(new LeaderElectionConfigBuilder()
                .withName("leader").withLock(new LeaseLock(NAMESPACE, "leader", name))
                .withLeaseDuration(Duration.ofSeconds(3)).withRenewDeadline(Duration.ofSeconds(2))
                .withRetryPeriod(Duration.ofMillis(100)).withReleaseOnCancel()
                .withLeaderCallbacks(new LeaderCallbacks(() -> told.add(name), () -> { }, leader -> { })).build())
                .build().start();
    }
}
