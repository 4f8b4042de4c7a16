from .assignment import (
    BACKENDS as BACKENDS,
    PAIRS as PAIRS,
    Assignment as Assignment,
    LabelWords as LabelWords,
    assign as assign,
    fit_tomotopy as fit_tomotopy,
    fit_topics as fit_topics,
    given_topics as given_topics,
    label_words as label_words,
    load_topics as load_topics,
)
from .attention import (
    CHUNK as CHUNK,
    TopicRelation as TopicRelation,
    tally_attention as tally_attention,
)
from .commands import (
    WordMap as WordMap,
    fit_corpus as fit_corpus,
    map_words as map_words,
    probe as probe,
    read_timeline as read_timeline,
    read_words as read_words,
    timeline as timeline,
    word_map as word_map,
)
from .configs import (
    THRESHOLDS as THRESHOLDS,
    Measurement as Measurement,
    ModelPass as ModelPass,
    ProbeConfig as ProbeConfig,
    TimelineConfig as TimelineConfig,
    TopicsConfig as TopicsConfig,
    WordsConfig as WordsConfig,
    probe_point as probe_point,
)
from .corpora import (
    Corpus as Corpus,
    unread as unread,
)
from .forward import (
    attention_of as attention_of,
    padded as padded,
    shifted_right as shifted_right,
    word_vectors as word_vectors,
)
from .inputs import (
    SEAL as SEAL,
    check_inputs as check_inputs,
    check_libraries as check_libraries,
    check_model as check_model,
    cost_of as cost_of,
    find_snapshots as find_snapshots,
    model_place as model_place,
    published_files as published_files,
    read_model_files as read_model_files,
    settings_that_cost as settings_that_cost,
)
from .losses import (
    NoOutputHead as NoOutputHead,
    Predictor as Predictor,
    WindowLosses as WindowLosses,
    ablate as ablate,
    position_losses as position_losses,
    predictor_of as predictor_of,
    with_output_head as with_output_head,
)
from .models import (
    LoadedModel as LoadedModel,
    checked as checked,
    load_model as load_model,
    load_tokenizer as load_tokenizer,
    load_weights as load_weights,
    quiet as quiet,
)
from .probe_rows import (
    TREATMENTS as TREATMENTS,
    AblationRow as AblationRow,
    CooccurrenceRow as CooccurrenceRow,
    CooccurringMean as CooccurringMean,
    DocumentRow as DocumentRow,
    HeadRow as HeadRow,
    LabelRow as LabelRow,
    MixtureScore as MixtureScore,
    PairContrast as PairContrast,
    Piece as Piece,
    ProbeRow as ProbeRow,
    ShownDocument as ShownDocument,
    ShownHead as ShownHead,
    ShownTopic as ShownTopic,
    StateRow as StateRow,
    TopicRow as TopicRow,
    TopicShare as TopicShare,
    interval_text as interval_text,
    ratio_text as ratio_text,
    short as short,
)
from .probes import (
    Probe as Probe,
    accuracy_text as accuracy_text,
    read_probe as read_probe,
    standing_heads as standing_heads,
)
from .probing import (
    probe_model as probe_model,
    timeline_of as timeline_of,
    unit as unit,
)
from .states import (
    StateProbe as StateProbe,
)
from .topics import (
    TopicFit as TopicFit,
    TopicQuality as TopicQuality,
    Topics as Topics,
    TopicWorld as TopicWorld,
    best as best,
    best_of as best_of,
    choice as choice,
    read_topics_folder as read_topics_folder,
    topic_world as topic_world,
)
from .verdicts import (
    CONTROLS as CONTROLS,
    Answer as Answer,
    Check as Check,
    CheckRow as CheckRow,
    Measured as Measured,
    ModelVerdict as ModelVerdict,
    verdict_of as verdict_of,
)
from .vocabulary import (
    LibraryModel as LibraryModel,
    Tokenizer as Tokenizer,
    Vocabulary as Vocabulary,
    Window as Window,
    batches as batches,
    chunks as chunks,
    encode as encode,
    read_stop_words as read_stop_words,
    special_tokens as special_tokens,
    top_pairs as top_pairs,
    whole_words as whole_words,
)
